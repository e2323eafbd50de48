//! Rules over everything else.

use super::Fleet;
use serde_json::{Value, json};

impl Fleet {
    pub(super) fn add_guardrails(&mut self) {
        let everywhere: Vec<usize> = (0..self.clusters.len()).collect();
        for document in 0..self.random.below(3) {
            let mut rules = Vec::new();
            for rule in 0..self.random.between(1, 3) {
                let mut written = json!({"name": format!("rule-{document}-{rule}")});
                if self.random.percent(40) {
                    written["for"] = json!({"data": *self.random.pick(&["pii", "public"])});
                }
                let (verb, value) = self.verb(&everywhere);
                written[verb] = value;
                rules.push(written);
            }
            self.add("Guardrail", None, &format!("rules-{document}"), json!({"rules": rules}));
        }
    }

    fn verb(&mut self, everywhere: &[usize]) -> (&'static str, Value) {
        match self.random.below(10) {
            0..3 => ("deny", json!({"from": self.cluster_set(everywhere), "to": self.cluster_set(everywhere)})),
            3..5 => ("max", json!({"percent": self.random.between(10, 100), "to": self.cluster_set(everywhere)})),
            5 => ("require", json!({"hostnames": ["*.mesh.example", "*.alt.bank.example", "user.mesh.example"]})),
            6 => ("require", json!({"accessPolicy": true})),
            _ => {
                let mut item = json!({"namespace": "monitoring", "serviceAccount": "prometheus"});
                if self.random.percent(25) {
                    let caller = self.random.below(self.services.len());
                    let caller = &self.services[caller];
                    item = json!({"namespace": caller.namespace, "serviceAccount": caller.account});
                }
                if self.random.percent(50) {
                    item["clusters"] = self.cluster_set(everywhere);
                }
                ("alwaysAllow", json!([item]))
            }
        }
    }
}
