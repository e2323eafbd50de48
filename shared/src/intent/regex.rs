//! Regular expressions as Envoy reads them: RE2, the whole text must fit.

/// Says what is wrong with an expression.
pub(super) fn check(expression: &str) -> Result<(), String> {
    if expression.len() > 1024 {
        return Err("longer than 1024 characters".to_owned());
    }
    // Beyond RE2: set operations inside a class, and comments and spaces that do not count.
    for foreign in ["&&", "--", "~~", "(?x", "\\u", "\\<", "\\b{"] {
        if expression.contains(foreign) {
            return Err(format!("`{foreign}` is not understood"));
        }
    }
    regex_syntax::ParserBuilder::new().nest_limit(50).build().parse(expression).map(|_| ()).map_err(|error| match error
    {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "not understood".to_owned(),
    })
}
