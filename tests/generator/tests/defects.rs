//! Every defect is told, by its code, at its place.

use fleet_generator::defect::all;
use fleet_generator::fleet::fleet;
use fleet_generator::world::world_of;

/// So many fleets have a place for every defect.
const FLEETS: u64 = 60;

/// More fleets would only repeat what these show.
const MOST: u32 = 8;

#[test]
fn diagnostics_name_the_place_of_the_defect() {
    let fleets: Vec<_> = (1..=FLEETS).map(|seed| (seed, fleet(seed))).collect();
    let mut wrong = Vec::new();
    for defect in all() {
        let mut injected = 0;
        for (seed, documents) in &fleets {
            let Some(broken) = defect.inject(documents, *seed) else { continue };
            injected += 1;
            if injected > MOST {
                break;
            }
            let found = world_of(&broken.texts).check();
            let (line, column) = broken.place;
            let told = found.iter().any(|finding| {
                finding.code == defect.code
                    && finding.place.is_some_and(|place| {
                        (place.file as usize, place.line, place.column) == (broken.file, line, column)
                    })
            });
            if !told {
                let errors = found.iter().filter(|finding| finding.is_error());
                let errors: Vec<String> = errors
                    .map(|error| {
                        let at = error.place.map_or((0, 0, 0), |place| (place.file, place.line, place.column));
                        format!("{} at {at:?} {}", error.code.id, error.message)
                    })
                    .collect();
                wrong.push(format!(
                    "{}, seed {seed}: expected {} at {:?}, found {errors:#?} in\n{}",
                    defect.name,
                    defect.code.id,
                    (broken.file, line, column),
                    broken.texts[broken.file].yaml
                ));
                break;
            }
        }
        assert!(injected > 0, "no fleet of {FLEETS} has a place for: {}", defect.name);
    }
    assert!(wrong.is_empty(), "{} of {} kinds:\n{}", wrong.len(), all().count(), wrong.join("\n"));
}

/// The list is long enough to cover all stages, and each kind is called differently.
#[test]
fn there_are_many_kinds_of_defects() {
    let names: std::collections::BTreeSet<&str> = all().map(|defect| defect.name).collect();
    assert_eq!(names.len(), all().count());
    assert!(all().count() >= 100);
    let codes: std::collections::BTreeSet<&str> = all().map(|defect| defect.code.id).collect();
    assert!(codes.len() >= 74, "{}", codes.len());
}
