//! What has to hold whatever stands in the files; the random tests and the coverage-guided fuzzer share it.

use mesh::World;
use mesh::diagnostic::{Diagnostic, Diagnostics};
use mesh::manifest::to_yaml_stream;
use mesh::source::{File, Limits};
use std::collections::BTreeMap;

/// What has to hold for every world, however damaged.
pub(crate) fn judge(files: Vec<File>) {
    let breaks = |file: &File| file.bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    let lines: BTreeMap<String, usize> = files.iter().map(|file| (file.path.clone(), breaks(file) + 1)).collect();
    let world = World::of(files, &Limits::default(), Diagnostics::default());
    let found = world.check();
    let lines: Vec<usize> = world.files.iter().map(|file| lines[&file.path]).collect();
    for finding in &found {
        is_presentable(&lines, finding);
    }
    let errors = found.iter().any(Diagnostic::is_error);
    assert!(errors || !world.effective.fleet.clusters.is_empty(), "nothing was read, and nothing is wrong");
    for (cluster, _) in world.effective.fleet.cluster_ids() {
        match world.render(cluster) {
            Ok(rendered) => {
                assert!(!world.found.has_errors(), "rendered in spite of errors");
                assert!(!rendered.objects.is_empty(), "an empty success");
                assert!(!errors || to_yaml_stream(&rendered.objects).starts_with("apiVersion: "));
            }
            Err(found) => assert!(found.iter().any(Diagnostic::is_error) && errors, "refused without a reason"),
        }
    }
    let rows = mesh::explain::rows(&world.effective, &world.files, |_| true);
    for row in rows {
        let shares: u32 = row.shares.iter().map(|share| u32::from(share.percent)).sum();
        assert!(shares <= 100, "shares beyond 100 per cent");
    }
}

/// A finding is one line of text about a place that exists; `lines` are those of each file.
fn is_presentable(lines: &[usize], finding: &Diagnostic) {
    for place in finding.place.iter().chain(finding.related.iter().map(|(place, _)| place)) {
        let lines = lines[place.file as usize];
        assert!(place.line >= 1 && place.column >= 1 && place.line as usize <= lines + 1, "{finding:?}");
    }
    for text in std::iter::once(&finding.message).chain(&finding.help) {
        assert!(!text.is_empty() && !text.contains(['\n', '\r', '\u{1B}', '\0']), "{finding:?}");
        assert!(text.len() < 2_000, "{finding:?}");
    }
}
