//! Random fleets are without errors, and between them they use everything that documents can say.

use fleet_generator::coverage::Coverage;
use fleet_generator::document::Text;
use fleet_generator::fleet::{fleet, raw};
use fleet_generator::world::world_of;

/// So many fleets have every feature at least once.
const FLEETS: u64 = 300;

#[test]
fn fleets_use_everything_that_documents_can_say() {
    let mut coverage = Coverage::default();
    for seed in 1..=FLEETS {
        let documents = fleet(seed);
        let texts: Vec<Text> = documents.iter().map(Text::of).collect();
        let world = world_of(&texts);
        assert!(!world.found.has_errors(), "seed {seed}: {:?}", world.found.iter().find(|found| found.is_error()));
        coverage.add(&documents, &world.effective);
    }
    println!("{}", coverage.table());
    assert_eq!(coverage.missing(), Vec::<String>::new(), "no fleet of {FLEETS} has these");
}

#[test]
fn a_seed_is_a_fleet() {
    let text = |seed| fleet(seed).iter().map(|document| Text::of(document).yaml).collect::<String>();
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

/// If most of what is drawn had to be taken out again, the rest would be too simple to prove anything.
#[test]
fn most_of_what_is_drawn_is_kept() {
    let (mut drawn, mut kept) = (0, 0);
    for seed in 1..=100 {
        drawn += raw(seed).len();
        kept += fleet(seed).len();
    }
    assert!(kept * 100 > drawn * 70, "{kept} of {drawn} documents are kept");
}
