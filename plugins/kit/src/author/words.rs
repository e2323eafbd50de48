//! The short forms in which flags say what documents say in maps and lists.

use super::value::Value;
use anyhow::{Context, bail};

/// A set of clusters: `all`, or names and `KEY=VALUE`, separated by commas; `KEY=VALUE:KEY=VALUE` wants both labels.
///
/// # Errors
///
/// If an item is empty or no pair.
pub fn clusters(text: &str) -> anyhow::Result<Value> {
    if text == "all" { Ok(Value::text("all")) } else { list(text).map(Value::List) }
}

/// An order: like a set of clusters, and `+` puts several items into one tier.
///
/// # Errors
///
/// If an item is empty or no pair.
pub fn order(text: &str) -> anyhow::Result<Value> {
    let tiers = text.split(',').map(|tier| {
        let items: Vec<&str> = tier.split('+').collect();
        match items.as_slice() {
            [one] => item(one),
            several => several.iter().map(|text| item(text)).collect::<anyhow::Result<_>>().map(Value::List),
        }
    });
    tiers.collect::<anyhow::Result<_>>().map(Value::List)
}

/// A list of clusters and labels, separated by commas.
///
/// # Errors
///
/// If an item is empty or no pair.
pub fn list(text: &str) -> anyhow::Result<Vec<Value>> {
    text.split(',').map(item).collect()
}

/// A cluster, or labels.
fn item(text: &str) -> anyhow::Result<Value> {
    let text = text.trim();
    if text.is_empty() {
        bail!("an empty item in a list of clusters; write a cluster, or KEY=VALUE");
    }
    if !text.contains('=') {
        return Ok(Value::text(text));
    }
    let pairs = text.split(':').map(pair).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Value::Map(pairs.into_iter().map(|(key, value)| (key, Value::text(value))).collect()))
}

/// `KEY=VALUE`.
///
/// # Errors
///
/// If it is not.
pub fn pair(text: &str) -> anyhow::Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => bail!("\"{text}\" is not KEY=VALUE"),
    }
}

/// A port: `NAME=PORT[:TARGET][/PROTOCOL]`.
///
/// # Errors
///
/// If it is not.
pub fn port(text: &str) -> anyhow::Result<Value> {
    let form = || format!("\"{text}\" is no port; write NAME=PORT, NAME=PORT:TARGETPORT or NAME=PORT/PROTOCOL");
    let (name, rest) = pair(text).with_context(form)?;
    let (numbers, protocol) = match rest.split_once('/') {
        Some((numbers, protocol)) => (numbers, protocol),
        None => (rest.as_str(), "HTTP"),
    };
    let (number, target) = match numbers.split_once(':') {
        Some((number, target)) => (number, Some(target)),
        None => (numbers, None),
    };
    let whole = |text: &str| text.parse::<u16>().with_context(form).map(|number| Value::Number(number.into()));
    Ok(Value::map([
        ("name", Some(Value::text(name))),
        ("port", Some(whole(number)?)),
        ("targetPort", target.map(whole).transpose()?),
        ("protocol", Some(Value::text(protocol.to_uppercase()))),
    ]))
}

/// Callers: `SERVICE`, `NAMESPACE/SERVICE`, `NAMESPACE/` (all of a namespace), each with `@CLUSTERS` behind it, or
/// `@CLUSTERS` alone. `key` is the field that the name stands for.
///
/// # Errors
///
/// If it names nothing.
pub fn caller(text: &str, key: &'static str) -> anyhow::Result<Value> {
    let (who, place) = match text.split_once('@') {
        Some((who, place)) => (who, Some(clusters(place)?)),
        None => (text, None),
    };
    let (namespace, name) = match who.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, who),
    };
    let there = |text: &str| (!text.is_empty()).then(|| Value::text(text));
    let value = Value::map([(key, there(name)), ("namespace", namespace.and_then(there)), ("clusters", place)]);
    if value == Value::Map(Vec::new()) {
        bail!("\"{text}\" names no caller; write SERVICE, NAMESPACE/SERVICE or SERVICE@CLUSTER");
    }
    Ok(value)
}

/// What a flag says about a field: nothing if it was not given; an empty value takes the field out.
///
/// # Errors
///
/// If the value is not right.
pub fn field<'a>(
    path: &[&'a str],
    given: Option<&str>,
    read: impl FnOnce(&str) -> anyhow::Result<Value>,
) -> anyhow::Result<Option<super::documents::Field<'a>>> {
    let Some(text) = given else { return Ok(None) };
    let value = if text.is_empty() { None } else { Some(read(text)?) };
    Ok(Some((path.to_vec(), value)))
}

/// The same for a flag that can be given several times.
///
/// # Errors
///
/// If a value is not right.
pub fn fields<'a>(
    path: &[&'a str],
    given: &[String],
    read: impl Fn(&str) -> anyhow::Result<Value>,
) -> anyhow::Result<Option<super::documents::Field<'a>>> {
    match given {
        [] => Ok(None),
        [one] if one.is_empty() => Ok(Some((path.to_vec(), None))),
        several => {
            let values = several.iter().map(|text| read(text)).collect::<anyhow::Result<_>>()?;
            Ok(Some((path.to_vec(), Some(Value::List(values)))))
        }
    }
}

/// A called service: `SERVICE` or `NAMESPACE/SERVICE`.
#[must_use]
pub fn service(text: &str) -> Value {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    Value::map([("service", Some(Value::text(name))), ("namespace", namespace.map(Value::text))])
}

#[cfg(test)]
mod tests {
    use super::{caller, clusters, order, port};

    #[test]
    fn flags_say_what_documents_say() {
        let line = |value: anyhow::Result<super::Value>| value.expect("right").on_one_line(false);
        assert_eq!(line(clusters("all")), "all");
        assert_eq!(line(clusters("eks,hosting=on-prem:region=same")), "[eks, {hosting: on-prem, region: same}]");
        assert_eq!(line(order("local,wine+canary=true,all")), "[local, [wine, {canary: \"true\"}], all]");
        assert_eq!(
            line(caller("shop/web@eks,tier=foo", "service")),
            "{service: web, namespace: shop, clusters: [eks, {tier: foo}]}"
        );
        assert_eq!(line(caller("shop/", "service")), "{namespace: shop}");
        assert_eq!(line(caller("@all", "service")), "{clusters: all}");
        assert_eq!(line(port("grpc=9090:8080/grpc")), "{name: grpc, port: 9090, targetPort: 8080, protocol: GRPC}");
        for wrong in ["", "a,,b", "=x", "a="] {
            assert!(clusters(wrong).is_err(), "{wrong}");
        }
        for wrong in ["8080", "http=", "http=x", "http=70000", "http=80:"] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
        assert!(caller("/", "service").is_err());
    }
}
