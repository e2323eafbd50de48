//! The contract of `argocd-mesh-cmp` as Argo CD's repo-server uses it, on the program itself: what it renders, what it
//! refuses, and the first line of what it says, which is all that Argo CD's user interface shows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../support.rs"]
mod support;

use std::path::Path;
use std::process::Output;
use support::{code, command, copy, example, run, tests, text};

const CMP: &str = env!("CARGO_BIN_EXE_argocd-mesh-cmp");

fn generate(folder: &Path, environment: &[(&str, &str)]) -> Output {
    command(CMP, folder).arg("generate").envs(environment.iter().copied()).output().unwrap()
}

fn parameters(list: &str) -> [(&str, &str); 1] {
    [("ARGOCD_APP_PARAMETERS", list)]
}

/// The first line of a refusal; nothing may stand on stdout.
fn refused(folder: &Path, environment: &[(&str, &str)]) -> String {
    let output = generate(folder, environment);
    assert_eq!((code(&output), text(&output.stdout).as_str()), (1, ""), "{environment:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: "), "{environment:?}: {stderr}");
    stderr.lines().next().unwrap().to_owned()
}

/// A folder with the example fleet.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&example(), folder.path());
    folder
}

#[test]
fn the_objects_are_those_of_render() {
    for cluster in ["eks", "cluster-1", "cluster-2", "wine", "canary-1"] {
        let list = format!(r#"[{{"name": "cluster", "string": "{cluster}"}}, {{"name": "waves", "string": "false"}}]"#);
        let output = generate(&example(), &parameters(&list));
        assert_eq!((code(&output), text(&output.stderr).as_str()), (0, ""));
        let stream = text(&output.stdout);
        let mut objects: Vec<&str> = stream.split("---\n").filter(|object| !object.is_empty()).collect();
        objects.sort_unstable();
        let folder = tests().join("golden/example/rendered").join(cluster);
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap() != "kustomization.yaml")
            .map(|path| std::fs::read_to_string(path).unwrap().split_once('\n').unwrap().1.to_owned())
            .collect();
        files.sort();
        assert_eq!(objects, files, "{cluster}");
    }
}

#[test]
fn waves_are_the_only_addition() {
    let with = text(&generate(&example(), &[("ARGOCD_ENV_CLUSTER", "eks")]).stdout);
    let list = r#"[{"name": "cluster", "string": "eks"}, {"name": "waves", "string": "false"}]"#;
    let without = text(&generate(&example(), &parameters(list)).stdout);
    let is_wave = |line: &&str| line.trim_start().starts_with("argocd.argoproj.io/sync-wave: ");
    assert_eq!(with.lines().filter(is_wave).count(), with.lines().filter(|line| line.starts_with("kind: ")).count());
    assert_eq!(with.lines().filter(|line| !is_wave(line)).collect::<Vec<_>>(), without.lines().collect::<Vec<_>>());
}

#[test]
fn the_cluster_is_named_and_never_guessed() {
    let fleet = example();
    let eks = r#"[{"name": "cluster", "string": "eks"}]"#;
    let expected = text(&generate(&fleet, &parameters(eks)).stdout);
    assert!(expected.contains("kind: ServiceEntry"));
    for environment in [
        &[("ARGOCD_ENV_CLUSTER", "eks")][..],
        &[("ARGOCD_APP_PARAMETERS", "null"), ("ARGOCD_ENV_CLUSTER", "eks")],
        &[("ARGOCD_APP_PARAMETERS", eks), ("ARGOCD_ENV_CLUSTER", "eks"), ("ARGOCD_APP_NAME", "mesh-eks")],
        &[("ARGOCD_APP_PARAMETERS", eks), ("ARGOCD_ENV_CLUSTER", "")],
        &[
            ("ARGOCD_APP_PARAMETERS", eks),
            ("PARAM_CLUSTER", "wine"),
            ("CLUSTER", "wine"),
            ("ARGOCD_APP_DESTINATION_NAME", "wine"),
        ],
    ] {
        let output = generate(&fleet, environment);
        assert_eq!((code(&output), text(&output.stdout)), (0, expected.clone()), "{environment:?}");
    }
    let unset = "error: parameter \"cluster\" is not set; set spec.source.plugin.parameters";
    for environment in [
        &[][..],
        &[("ARGOCD_APP_PARAMETERS", "null")],
        &[("ARGOCD_APP_PARAMETERS", "[]")],
        &[("ARGOCD_APP_PARAMETERS", r#"[{"name": "cluster", "string": ""}]"#)],
        &[("PARAM_CLUSTER", "eks"), ("CLUSTER", "eks")],
    ] {
        let first = refused(&fleet, environment);
        assert!(first.starts_with(unset), "{first}");
    }
    let first = refused(&fleet, &[("ARGOCD_APP_PARAMETERS", eks), ("ARGOCD_ENV_CLUSTER", "wine")]);
    assert_eq!(first, "error: parameter \"cluster\" and ARGOCD_ENV_CLUSTER name different clusters; set one of them");
    let first = refused(&fleet, &[("ARGOCD_ENV_CLUSTER", "esk")]);
    assert_eq!(
        first,
        "error: parameter \"cluster\": no Cluster document is called \"esk\"; did you mean \"eks\"? [MESH701]"
    );
    let first = refused(&fleet, &[("ARGOCD_ENV_CLUSTER", "a\nb\u{1b}[31m")]);
    assert!(first.contains("called \"a\\nb\\u{1b}[31m\""), "{first}");
}

#[test]
fn parameters_that_are_not_understood_are_refused() {
    let fleet = example();
    for (list, expected) in [
        ("", "ARGOCD_APP_PARAMETERS is not a list of parameters (line 1, column 0)"),
        ("{}", "ARGOCD_APP_PARAMETERS is not a list of parameters"),
        (r#"[{"string": "eks"}]"#, "ARGOCD_APP_PARAMETERS is not a list of parameters"),
        (r#"[{"name": "cluster", "array": ["eks"]}]"#, "parameter \"cluster\" needs `string`, not an array or map"),
        (r#"[{"name": "cluster", "map": {"eks": ""}}]"#, "parameter \"cluster\" needs `string`, not an array or map"),
        (
            r#"[{"name": "clutser", "string": "eks"}]"#,
            "parameter \"clutser\" is unknown; the parameters are cluster, intents and waves",
        ),
        (
            r#"[{"name": "cluster", "string": "eks"}, {"name": "cluster", "string": "wine"}]"#,
            "parameter \"cluster\" is set twice, to different values",
        ),
        (r#"[{"name": "waves", "string": "no"}]"#, "parameter \"waves\" is neither \"true\" nor \"false\""),
        (r#"[{"name": "intents", "map": {}}]"#, "parameter \"intents\" needs `array`"),
    ] {
        let first = refused(&fleet, &[("ARGOCD_APP_PARAMETERS", list), ("ARGOCD_ENV_CLUSTER", "eks")]);
        assert!(first.starts_with(&format!("error: {expected}")), "{list}: {first}");
    }
}

#[test]
fn intents_stay_inside_the_applications_path() {
    let folder = repository();
    let path = |intents: &str| {
        format!(r#"[{{"name": "cluster", "string": "eks"}}, {{"name": "intents", "array": {intents}}}]"#)
    };
    let whole = text(&generate(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]).stdout);
    let both = generate(folder.path(), &parameters(&path(r#"["inventory", "./intents"]"#)));
    assert_eq!((code(&both), text(&both.stdout)), (0, whole));

    std::os::unix::fs::symlink("intents", folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
    for intents in [r#"["../x"]"#, r#"["/etc"]"#, r#"["intents/../.."]"#, r#"["link"]"#, r#"["etc/ssl"]"#, r#"[""]"#] {
        let first = refused(folder.path(), &parameters(&path(intents)));
        assert!(
            first.starts_with("error: parameter \"intents\" must name folders and files below"),
            "{intents}: {first}"
        );
    }
    let first = refused(folder.path(), &parameters(&path(r#"["-"]"#)));
    assert_eq!(first, "error: -: no such file or folder [MESH009]", "standard input is no part of the repository");
    let first = refused(folder.path(), &parameters(&path(r#"["intnets"]"#)));
    assert_eq!(first, "error: intnets: no such file or folder [MESH009]");
    // Read whole, the repository has a link in it.
    let first = refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
    assert!(first.contains("a symbolic link"), "{first}");
}

#[test]
fn a_repository_cannot_choose_another_cluster() {
    let folder = repository();
    std::fs::write(folder.path().join(".argocd-source-other.yaml"), "plugin: {}").unwrap();
    let environment = [("ARGOCD_ENV_CLUSTER", "eks"), ("ARGOCD_APP_NAME", "mesh-eks")];
    assert_eq!(code(&generate(folder.path(), &environment)), 0, "the file of another application");
    std::fs::write(folder.path().join(".argocd-source-mesh-eks.yaml"), "plugin: {}").unwrap();
    let first = refused(folder.path(), &environment);
    assert!(
        first.starts_with("error: .argocd-source-mesh-eks.yaml: a file in the repository may not override"),
        "{first}"
    );
    std::os::unix::fs::symlink("nowhere", folder.path().join(".argocd-source.yaml")).unwrap();
    let first = refused(folder.path(), &environment[..1]);
    assert!(first.starts_with("error: .argocd-source.yaml: "), "{first}");
}

#[test]
fn nothing_to_render_is_never_a_success() {
    let folder = tempfile::tempdir().unwrap();
    let eks = [("ARGOCD_ENV_CLUSTER", "eks")];
    assert!(refused(folder.path(), &eks).starts_with("error: no YAML or JSON file below the application's path"));
    std::fs::write(folder.path().join("deployment.yaml"), "apiVersion: apps/v1\nkind: Deployment\n").unwrap();
    assert_eq!(
        refused(folder.path(), &eks),
        "error: parameter \"cluster\": no Cluster document is called \"eks\"; no Cluster document was read; spec.source.path must hold the inventory [MESH201]"
    );
    std::fs::write(folder.path().join("bad.yaml"), "apiVersion: meshintent.dev/v1alpha1\nkind: Clutser\n").unwrap();
    assert_eq!(refused(folder.path(), &eks), "error: bad.yaml:2:7: the kind \"Clutser\" is unknown [MESH101]");

    let folder = repository();
    std::fs::write(folder.path().join("intents/web.yaml"), "apiVersion: meshintent.dev/v1alpha1\nkind: [").unwrap();
    let first = refused(folder.path(), &eks);
    assert!(first.starts_with("error: intents/web.yaml:"), "{first}");
}

#[test]
fn the_form_is_offered_whatever_the_documents_are() {
    let announced = |folder: &Path| -> serde_json::Value {
        let output = run(CMP, folder, &["parameters"]);
        assert_eq!((code(&output), text(&output.stderr).as_str()), (0, ""));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let form = announced(&example());
    assert_eq!((&form[0]["name"], &form[0]["required"]), (&"cluster".into(), &true.into()));
    assert!(form[0]["tooltip"].as_str().unwrap().contains("canary-1, cluster-1, cluster-2, eks, wine"), "{form}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.yaml"), "{").unwrap();
    assert_eq!(announced(folder.path())[0]["name"], "cluster");
}

#[test]
fn a_misused_command_line_is_told() {
    let version = run(CMP, Path::new("/"), &["version"]);
    assert_eq!(text(&version.stdout), format!("argocd-mesh-cmp v{}\n", env!("CARGO_PKG_VERSION")));
    let unknown = run(CMP, Path::new("/"), &["generat"]);
    assert_eq!((code(&unknown), text(&unknown.stdout).as_str()), (1, ""));
    assert!(text(&unknown.stderr).starts_with("error: unknown command \"generat\""), "{}", text(&unknown.stderr));
    let none = run(CMP, &example(), &[]);
    assert_eq!((code(&none), text(&none.stdout).as_str()), (1, ""), "help is no manifest");
    assert!(text(&none.stderr).starts_with("error: no command is given\n"), "{}", text(&none.stderr));
    let surplus = run(CMP, &example(), &["generate", "eks"]);
    assert_eq!((code(&surplus), text(&surplus.stdout).as_str()), (1, ""));
    assert!(text(&surplus.stderr).starts_with("error: unexpected argument \"eks\""), "{}", text(&surplus.stderr));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        command(CMP, &example()).arg("generate").env("ARGOCD_ENV_CLUSTER", "eks").stdout(full).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).starts_with("error: the output could not be written: "), "{}", text(&output.stderr));
}

#[test]
fn a_files_name_does_not_write_messages() {
    let folder = repository();
    let wrong = "apiVersion: meshintent.dev/v1alpha1\nkind: [";
    for (name, shown) in [
        ("a\nerror: b\u{1b}[2J.yaml", "a\u{FFFD}error: b\u{FFFD}[2J.yaml:3:"),
        ("a\u{202E}b.yaml", "a\u{FFFD}b.yaml:3:"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, wrong).unwrap();
        let first = refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
        assert!(first.starts_with(&format!("error: {shown}")), "{first}");
        std::fs::remove_file(path).unwrap();
    }
    use std::os::unix::ffi::OsStrExt;
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"a\xFF.yaml"));
    std::fs::write(path, wrong).unwrap();
    let first = refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
    assert!(first.starts_with("error: a\u{FFFD}.yaml:3:"), "{first}");
}

#[test]
fn what_is_no_regular_file_is_never_opened() {
    let folder = repository();
    // Opening a pipe waits for its writer: a test that hangs has found it.
    let pipe = folder.path().join("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let whole = refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
    assert_eq!(whole, "error: pipe.yaml: not a regular file [MESH009]");
    let list = r#"[{"name": "cluster", "string": "eks"}, {"name": "intents", "array": ["pipe.yaml"]}]"#;
    assert_eq!(refused(folder.path(), &parameters(list)), "error: pipe.yaml: neither a file nor a folder [MESH009]");
    std::fs::remove_file(pipe).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket.yaml")).unwrap();
    let first = refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
    assert_eq!(first, "error: socket.yaml: not a regular file [MESH009]");
}

#[test]
fn links_are_never_followed() {
    for (name, target) in [
        ("x.yaml", "/etc/passwd"),
        ("x.yaml", "../../etc/passwd"),
        ("x.yaml", "intents/bank.yaml"),
        ("x.yaml", "x.yaml"),
        ("x.yaml", "nowhere"),
        ("folder", "/etc"),
        ("folder", "intents"),
        ("folder", "."),
    ] {
        let folder = repository();
        std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        let first = refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
        assert!(first.starts_with(&format!("error: {name}: a symbolic link, which is not followed")), "{first}");
    }
}

#[test]
fn size_and_number_of_files_are_bounded() {
    let bounded = |prepare: &dyn Fn(&Path)| {
        let folder = repository();
        prepare(folder.path());
        refused(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")])
    };
    // A file that says it is larger than any disk is not read to its end.
    let first = bounded(&|folder| std::fs::File::create(folder.join("x.yaml")).unwrap().set_len(1 << 40).unwrap());
    assert!(first.starts_with("error: x.yaml: larger than 16777216 bytes"), "{first}");
    let folder = repository();
    for number in 0..5 {
        std::fs::File::create(folder.path().join(format!("{number}.yaml"))).unwrap().set_len(15 << 20).unwrap();
    }
    let output = generate(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
    assert!(
        text(&output.stderr).contains("more than 67108864 bytes in all files together"),
        "{}",
        text(&output.stderr)
    );
    let first = bounded(&|folder| {
        std::fs::create_dir_all(folder.join("d/".repeat(40))).unwrap();
    });
    assert!(first.ends_with("folders more than 32 deep [MESH009]"), "{first}");
    let first = bounded(&|folder| {
        std::fs::create_dir(folder.join("many")).unwrap();
        for number in 0..50_001 {
            std::fs::File::create(folder.join(format!("many/{number}.yaml"))).unwrap();
        }
    });
    assert!(first.contains("more than 50000 files"), "{first}");
}

#[test]
fn memory_is_bounded() {
    let folder = repository();
    let eks = ("ARGOCD_ENV_CLUSTER", "eks");
    let small = ("MESH_MEMORY_MIB", "32");
    assert_eq!(code(&generate(folder.path(), &[eks, small])), 0);
    // What one file can take without a bound: every key is a mistake.
    let keys: String = (0..120_000).map(|key| format!("  k{key}:\n")).collect();
    let head = "apiVersion: meshintent.dev/v1alpha1\nkind: MeshService\nmetadata: {name: a, namespace: b}\nspec:\n";
    std::fs::write(folder.path().join("x.yaml"), format!("{head}{keys}")).unwrap();
    let output = generate(folder.path(), &[eks, small]);
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(text(&output.stderr).contains("memory allocation of"), "{}", text(&output.stderr));
    let first = refused(folder.path(), &[eks]);
    assert!(first.starts_with("error: x.yaml:5:3: unknown field \"k0\""), "{first}");
    let first = refused(folder.path(), &[eks, ("MESH_MEMORY_MIB", "lots")]);
    assert_eq!(first, "error: MESH_MEMORY_MIB is not a number of MiB");
}

#[test]
fn objects_carry_nothing_that_argo_cd_would_run() {
    let folder = repository();
    let annotations = "annotations: {argocd.argoproj.io/hook: PostSync, argocd.argoproj.io/sync-options: Replace=true}";
    for file in ["inventory/clusters.yaml", "intents/bank.yaml", "intents/shop.yaml", "intents/fleet.yaml"] {
        let path = folder.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = text.replace("metadata: {name:", &format!("metadata: {{{annotations}, name:"));
        let changed = changed.replace("metadata:\n", &format!("metadata:\n  {annotations}\n"));
        assert_ne!(text, changed, "{file}");
        std::fs::write(path, changed).unwrap();
    }
    let output = generate(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), text(&generate(&example(), &[("ARGOCD_ENV_CLUSTER", "eks")]).stdout));
    for line in text(&output.stdout).lines().filter(|line| line.contains("argocd.argoproj.io/")) {
        assert!(line.trim_start().starts_with("argocd.argoproj.io/sync-wave: "), "{line}");
    }
}

#[test]
fn surroundings_change_nothing() {
    let eks = ("ARGOCD_ENV_CLUSTER", "eks");
    let expected = text(&generate(&example(), &[eks]).stdout);
    let long = "x".repeat(100_000);
    for more in [
        &[("HOME", "/nonexistent"), ("TMPDIR", "/nonexistent"), ("PATH", "")][..],
        &[("LANG", "tr_TR.UTF-8"), ("LC_ALL", "../../etc"), ("TZ", "/etc/passwd")],
        &[("RUST_BACKTRACE", "full"), ("RUST_LOG", "trace"), ("RUST_MIN_STACK", "1"), ("NO_COLOR", "")],
        &[
            ("ARGOCD_APP_NAME", "../../etc/x\n\u{1b}[2J"),
            ("ARGOCD_APP_SOURCE_PATH", "/etc"),
            ("ARGOCD_APP_NAMESPACE", "$(id)"),
        ],
        &[("ARGOCD_APP_NAME", &long), ("KUBE_API_VERSIONS", &long), ("ARGOCD_ENV_MESH_MEMORY_MIB", "1")],
    ] {
        let output = generate(&example(), &[&[eks], more].concat());
        assert_eq!((code(&output), text(&output.stdout)), (0, expected.clone()), "{}", text(&output.stderr));
    }
}

#[test]
fn contents_of_other_documents_are_not_shown() {
    let secret = "cGFzc3dvcmQ6aHVudGVyMg==";
    for broken in [
        format!("apiVersion: v1\nkind: Secret\ndata: {{password: {secret}\n"),
        format!("apiVersion: v1\nkind: Secret\ndata:\n  password: {secret}\n  password: {secret}\n"),
        format!("apiVersion: v1\nkind: Secret\ndata: &{secret} {{}}\n"),
        format!("{secret}: [\n"),
        format!("\"{secret}\n"),
    ] {
        let folder = repository();
        std::fs::write(folder.path().join("secret.yaml"), &broken).unwrap();
        let output = generate(folder.path(), &[("ARGOCD_ENV_CLUSTER", "eks")]);
        let shown = text(&output.stderr) + &text(&output.stdout);
        assert!(!shown.contains(secret), "{broken}: {shown}");
    }
}
