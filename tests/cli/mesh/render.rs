//! `render`: manifests on stdout and nothing else, or folders, all or nothing.

use crate::MESH;
use crate::support::{code, command, copy, example, run, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with the example fleet in `fleet`.
fn world() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), &folder.path().join("fleet"));
    folder
}

const ALL: [&str; 6] = ["render", "-f", "fleet", "--all", "--output-dir", "out"];

fn render_all(folder: &Path) -> Output {
    run(MESH, folder, &ALL)
}

/// Everything below a folder: contents of files, targets of links, and when each was changed.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        let content = if metadata.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            std::fs::read(&path).unwrap()
        };
        // Staging beside the files changes the time of the folder, and nothing in it.
        let time = if metadata.is_dir() { std::time::SystemTime::UNIX_EPOCH } else { metadata.modified().unwrap() };
        all.insert(path, (content, time));
    }
    all
}

#[test]
fn stdout_holds_manifests_and_nothing_else() {
    let fleet = example();
    let yaml = run(MESH, &fleet, &["render", "--cluster", "eks"]);
    assert_eq!((code(&yaml), text(&yaml.stderr)), (0, String::new()));
    let yaml = text(&yaml.stdout);
    let objects = yaml.lines().filter(|line| line.starts_with("kind: ")).count();
    assert!(objects > 10 && yaml.matches("app.kubernetes.io/managed-by: kubectl-mesh").count() == objects, "{yaml}");
    assert_eq!(yaml.matches("meshintent.dev/intents:").count(), objects);

    let json = run(MESH, &fleet, &["render", "--cluster", "eks", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["apiVersion"], &json["kind"]), (&"v1".into(), &"List".into()));
    assert_eq!(json["items"].as_array().unwrap().len(), objects);

    let names = text(&run(MESH, &fleet, &["render", "--cluster", "eks", "-o", "name"]).stdout);
    assert_eq!(names.lines().count(), objects);
    assert!(names.lines().all(|line| line.split('/').count() == 2 && line.contains(".istio.io/")), "{names}");
}

#[test]
fn surroundings_change_nothing() {
    let plain = run(MESH, &example(), &["render", "--cluster", "cluster-2"]);
    let odd = command(MESH, &example())
        .args(["render", "--cluster", "cluster-2"])
        .envs([
            ("LC_ALL", "tr_TR.UTF-8"),
            ("TZ", "Pacific/Kiritimati"),
            ("CLICOLOR_FORCE", "1"),
            ("KUBECONFIG", "/none"),
        ])
        .output()
        .unwrap();
    assert_eq!((plain.stdout, text(&odd.stderr)), (odd.stdout, String::new()));
}

#[test]
fn a_cluster_without_anything_gets_a_marker() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = "apiVersion: meshintent.dev/v1alpha1\nkind: Cluster\nmetadata: {name: idle}\nspec: {region: here, network: lan, mesh: {importNamespace: mesh-imports}}\n";
    std::fs::write(folder.path().join("clusters.yaml"), cluster).unwrap();
    let output = run(MESH, folder.path(), &["render", "--cluster", "idle", "-o", "json"]);
    let marker: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(marker["kind"], "ConfigMap", "one object needs no list");
    let metadata = &marker["metadata"];
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&"kubectl-mesh".into(), &"mesh-imports".into()));
}

#[test]
fn what_cannot_be_rendered_is_an_error_without_output() {
    let folder = world();
    let refused = |arguments: &[&str], first: &str| {
        let output = run(MESH, folder.path(), &[&["render"], arguments].concat());
        assert_eq!((code(&output), text(&output.stdout).as_str()), (1, ""), "{arguments:?}: {}", text(&output.stderr));
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(first), "{arguments:?}: {stderr}");
        assert!(!folder.path().join("out").exists());
    };
    refused(
        &["-f", "fleet", "--cluster", "eksx"],
        "error: no Cluster document is called \"eksx\"; did you mean \"eks\"?",
    );
    refused(&["-f", "fleet", "--cluster", ""], "error: no Cluster document is called \"\"");
    refused(&["-f", "fleet/intents", "--cluster", "eks"], "error: no Cluster document was read");
    std::fs::write(folder.path().join("fleet/bad.yaml"), "apiVersion: meshintent.dev/v1alpha1\nkind: Guardrial\n")
        .unwrap();
    let first = "error: fleet/bad.yaml:2:7: the kind \"Guardrial\" is unknown";
    refused(&["-f", "fleet", "--cluster", "eks"], first);
    refused(&["-f", "fleet", "--all", "--output-dir", "out"], first);
    // Found by the mesh's own backend, when the folder has been made already.
    std::fs::remove_file(folder.path().join("fleet/bad.yaml")).unwrap();
    let inventory = folder.path().join("fleet/inventory/clusters.yaml");
    let clusters = std::fs::read_to_string(&inventory).unwrap().replacen("type: istio", "type: linkerd", 1);
    std::fs::write(&inventory, clusters).unwrap();
    let first = "error: fleet/inventory/clusters.yaml:10:16: the mesh of eks is Linkerd";
    refused(&["-f", "fleet", "--all", "--output-dir", "out/new"], first);
}

#[test]
fn folders_are_written_once_and_kept_in_step() {
    let folder = world();
    let out = folder.path().join("out");
    let first = render_all(folder.path());
    assert_eq!((code(&first), text(&first.stdout).as_str()), (0, ""), "{}", text(&first.stderr));
    let written = snapshot(&out);
    for cluster in ["eks", "cluster-1", "cluster-2", "wine", "canary-1"] {
        let kustomization = std::fs::read_to_string(out.join(cluster).join("kustomization.yaml")).unwrap();
        let listed: Vec<&str> = kustomization.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(listed, sorted);
        let mut found: Vec<String> = std::fs::read_dir(out.join(cluster))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "kustomization.yaml")
            .collect();
        found.sort();
        assert_eq!(listed, found);
    }
    // Nothing but what was asked for: no staging folder is left.
    let below = |path: &PathBuf| path.strip_prefix(&out).unwrap().to_string_lossy().into_owned();
    assert!(written.keys().all(|path| !below(path).starts_with('.')), "{:?}", written.keys());

    assert_eq!(code(&render_all(folder.path())), 0);
    assert_eq!(snapshot(&out), written, "the second run changes nothing, not even a time");

    // What nobody here wrote stays; what is no longer wanted goes, with its folder.
    std::fs::write(out.join("eks/notes.txt"), "mine").unwrap();
    std::fs::write(out.join("wine/extra.yaml"), "kind: Mine\n").unwrap();
    let clusters = folder.path().join("fleet/inventory/clusters.yaml");
    let text_before = std::fs::read_to_string(&clusters).unwrap();
    let parts: Vec<&str> = text_before.split("\n---\n").filter(|part| !part.contains("canary-1")).collect();
    std::fs::write(&clusters, parts.join("\n---\n")).unwrap();
    let bank = folder.path().join("fleet/intents/bank.yaml");
    let bank_text = std::fs::read_to_string(&bank).unwrap();
    let parts: Vec<String> = bank_text
        .split("\n---\n")
        .filter(|part| !part.contains("checkout-canary"))
        .map(|part| part.replace(", canary-1]", "]"))
        .collect();
    std::fs::write(&bank, parts.join("\n---\n")).unwrap();
    let fleet = folder.path().join("fleet/intents/fleet.yaml");
    let rules = std::fs::read_to_string(&fleet).unwrap();
    std::fs::write(&fleet, rules.lines().filter(|line| !line.contains("canary-cap")).collect::<Vec<_>>().join("\n"))
        .unwrap();
    let smaller = render_all(folder.path());
    assert_eq!(code(&smaller), 0, "{}", text(&smaller.stderr));
    assert!(!out.join("canary-1").exists());
    assert_eq!(std::fs::read(out.join("eks/notes.txt")).unwrap(), b"mine");
    assert_eq!(std::fs::read(out.join("wine/extra.yaml")).unwrap(), b"kind: Mine\n");
}

#[test]
fn one_file_per_cluster_on_request() {
    let folder = world();
    assert_eq!(code(&run(MESH, folder.path(), &[&ALL[..], &["--layout", "single"]].concat())), 0);
    let manifest = std::fs::read_to_string(folder.path().join("out/eks/manifest.yaml")).unwrap();
    let stream = text(&run(MESH, folder.path(), &["render", "-f", "fleet", "--cluster", "eks"]).stdout);
    assert!(manifest.ends_with(&stream), "the file holds the stream");
    // Changing the layout leaves nothing of the other one behind.
    assert_eq!(code(&render_all(folder.path())), 0);
    assert!(!folder.path().join("out/eks/manifest.yaml").exists());
}

/// What all files hold, hidden ones too.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    snapshot(folder).into_iter().map(|(path, (bytes, _))| (path, bytes)).collect()
}

/// Whatever goes wrong, a folder that was there stays as it was.
fn survives(folder: &Path, spoil: &str, expected: &str, run: impl Fn() -> Output) {
    let before = snapshot(&folder.join("out"));
    let output = run();
    let stderr = text(&output.stderr);
    assert_eq!((code(&output), text(&output.stdout).as_str()), (1, ""), "{spoil}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(expected), "{spoil}: {stderr}");
    assert_eq!(snapshot(&folder.join("out")), before, "{spoil}");
}

#[test]
fn a_folder_survives_any_failure_as_it_was() {
    let folder = world();
    let out = folder.path().join("out");
    assert_eq!(code(&render_all(folder.path())), 0);
    // Every file has to change from now on.
    let bank = folder.path().join("fleet/intents/bank.yaml");
    let changed = std::fs::read_to_string(&bank).unwrap().replace("8080", "9090");
    std::fs::write(&bank, &changed).unwrap();

    let bad = folder.path().join("fleet/zz.yaml");
    std::fs::write(&bad, "{").unwrap();
    survives(folder.path(), "a broken document", "zz.yaml:", || render_all(folder.path()));
    std::fs::remove_file(bad).unwrap();

    // Found in the middle of the work: the name of a cluster's folder is taken by a file.
    std::fs::rename(out.join("wine"), out.join("aside")).unwrap();
    std::fs::write(out.join("wine"), "mine").unwrap();
    survives(folder.path(), "a file in the place of a folder", "wine", || render_all(folder.path()));
    std::fs::remove_file(out.join("wine")).unwrap();
    std::fs::rename(out.join("aside"), out.join("wine")).unwrap();

    let taken = out.join("wine/kustomization.yaml");
    std::fs::write(&taken, "resources: [mine.yaml]\n").unwrap();
    survives(folder.path(), "a foreign file", "was not written by kubectl-mesh", || render_all(folder.path()));
    std::fs::remove_file(&taken).unwrap();
    std::fs::create_dir(&taken).unwrap();
    survives(folder.path(), "a folder in the place of a file", "is in the way", || render_all(folder.path()));
    std::fs::remove_dir(&taken).unwrap();

    assert_eq!(code(&render_all(folder.path())), 0, "and then it works");
}

/// Git's `core.autocrlf` changes what is checked out, not whose it is.
#[test]
fn a_checkout_with_other_line_ends_is_still_ours() {
    let folder = world();
    let out = folder.path().join("out");
    assert_eq!(code(&render_all(folder.path())), 0);
    let before = contents(&out);
    for (path, bytes) in before.iter().filter(|(path, _)| path.is_file()) {
        std::fs::write(path, String::from_utf8_lossy(bytes).replace('\n', "\r\n")).unwrap();
    }
    let again = render_all(folder.path());
    assert_eq!(code(&again), 0, "{}", text(&again.stderr));
    assert_eq!(contents(&out), before);
}

/// Between its first and its last moment a run is asked to end: the folder is as it was, or as it is wanted.
#[test]
fn an_interrupted_run_leaves_the_folder_as_it_was() {
    let folder = world();
    let out = folder.path().join("out");
    let bank = folder.path().join("fleet/intents/bank.yaml");
    let first = std::fs::read_to_string(&bank).unwrap();
    let second = first.replace("8080", "9090");
    let wanted = |documents: &str| {
        std::fs::write(&bank, documents).unwrap();
        assert_eq!(code(&render_all(folder.path())), 0);
        contents(&out)
    };
    let (new, old) = (wanted(&second), wanted(&first));
    assert_ne!(old, new);
    std::fs::write(&bank, &second).unwrap();
    let mut kept = 0;
    for delay in (0..200).step_by(4) {
        let mut child = command(MESH, folder.path())
            .args(["render", "-f", "fleet", "--all", "--output-dir", "out"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        let done = child.wait().unwrap().success();
        let found = contents(&out);
        assert_eq!(found, if done { new.clone() } else { old.clone() }, "{delay} ms, {kill}");
        kept += usize::from(!done);
        if done {
            assert_eq!(wanted(&first), old);
            std::fs::write(&bank, &second).unwrap();
        }
    }
    assert!(kept > 0, "no run was interrupted");
}

#[test]
fn what_a_killed_process_left_is_removed_and_two_runs_do_not_mix() {
    let folder = world();
    let out = folder.path().join("out");
    assert_eq!(code(&render_all(folder.path())), 0);
    let before = contents(&out);
    let left = out.join(".kubectl-mesh-left");
    std::fs::create_dir(&left).unwrap();
    let lock = std::fs::File::create(left.join("lock")).unwrap();
    lock.lock().unwrap();
    survives(folder.path(), "another run", "another process is writing to out", || render_all(folder.path()));
    drop(lock);
    assert_eq!(code(&render_all(folder.path())), 0);
    assert_eq!(contents(&out), before);
}

#[test]
fn nothing_is_written_through_a_link() {
    let folder = world();
    let (out, elsewhere) = (folder.path().join("out"), folder.path().join("elsewhere"));
    std::fs::create_dir_all(&out).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, out.join("eks")).unwrap();
    survives(folder.path(), "a link in the place of a folder", "eks", || render_all(folder.path()));
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn an_output_folder_that_cannot_be_one_is_refused() {
    let folder = world();
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    for target in ["file", "file/below", "/proc/none", "/dev/full"] {
        let output = run(MESH, folder.path(), &["render", "-f", "fleet", "--all", "--output-dir", target]);
        assert_eq!(code(&output), 1, "{target}");
        assert!(text(&output.stderr).starts_with("error: "), "{target}: {}", text(&output.stderr));
    }
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"mine");
}

/// Runs a script in which `out` is a file system of its own; `None` where the machine does not let tests mount one.
fn on_own_file_system(folder: &Path, script: &str) -> Option<Output> {
    let mount = "mount -t tmpfs -o size=200k none out 2>/dev/null || exit 77\n";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &format!("{mount}{script}")])
        .current_dir(folder)
        .env("MESH", MESH)
        .output()
        .ok()?;
    (output.status.code().is_some_and(|code| code != 77) && !text(&output.stderr).contains("unshare")).then_some(output)
}

#[test]
fn a_full_or_read_only_disk_changes_nothing() {
    let folder = world();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let script = "\
        $MESH render -f fleet --all --output-dir out --layout single 2>/dev/null || exit 78\n\
        (cd out && find . -type f | sort | xargs sha256sum) > before\n\
        sed -i s/8080/9090/ fleet/intents/*.yaml\n\
        dd if=/dev/zero of=out/ballast bs=1k 2>/dev/null; dd if=/dev/null of=out/ballast seek=1 bs=1k 2>/dev/null\n\
        dd if=/dev/zero of=out/rest bs=1k 2>/dev/null\n\
        rm -f out/rest.tmp\n\
        $MESH render -f fleet --all --output-dir out --layout single; echo full $?\n\
        (cd out && find . -type f ! -name ballast ! -name rest | sort | xargs sha256sum) | cmp - before && echo same\n\
        rm out/ballast out/rest; mount -o remount,ro out\n\
        $MESH render -f fleet --all --output-dir out --layout single; echo read-only $?\n\
        (cd out && find . -type f | sort | xargs sha256sum) | cmp - before && echo same\n\
        mount -o remount,rw out\n\
        $MESH render -f fleet --all --output-dir out --layout single; echo again $?\n";
    let Some(output) = on_own_file_system(folder.path(), script) else {
        return eprintln!("skipped: no file system of one's own may be mounted here");
    };
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(stdout, "full 1\nsame\nread-only 1\nsame\nagain 0\n", "{stderr}");
    assert!(stderr.contains("error: ") && stderr.to_lowercase().contains("no space left"), "{stderr}");
    assert!(stderr.to_lowercase().contains("read-only"), "{stderr}");
}

#[test]
fn a_reader_that_had_enough_is_no_failure() {
    for arguments in [&["render", "--cluster", "eks"][..], &["explain"], &["check"], &["schema"], &["clusters", "list"]]
    {
        let mut child =
            command(MESH, &example()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), text(&output.stderr).as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for arguments in
        [&["render", "--cluster", "eks"][..], &["explain"], &["schema"], &["version"], &["clusters", "list"]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(MESH, &example()).args(arguments).stdout(full).output().unwrap();
        assert_eq!(code(&output), 1, "{arguments:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{arguments:?}: {}", text(&output.stderr));
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(MESH, &example()).arg("check").stdout(full).output().unwrap();
    assert_eq!(code(&output), 2, "a check that could not run");
}
