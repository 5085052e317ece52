//! Typed access to the fields of one config file, every fault naming file and field.

use super::WeightError;
use crate::diffusion::place::Place;
use serde_json::Value;
use std::path::Path;

/// A parsed config file. `null` counts as absent, as it does for diffusers' optional fields.
pub(super) struct Fields<'a> {
    pub file: &'a Path,
    pub root: Value,
}

impl<'a> Fields<'a> {
    pub fn read(place: &'a Place) -> Result<Self, WeightError> {
        let file = place.path();
        let text = place.read_to_string().map_err(|e| WeightError::io(file, e))?;
        let root: Value = serde_json::from_str(&text).map_err(|e| WeightError::config(file, "JSON", e.to_string()))?;
        if root.is_object() { Ok(Fields { file, root }) } else { Err(WeightError::config(file, "JSON", "no object")) }
    }

    fn get(&self, field: &str) -> Option<&Value> {
        self.root.get(field).filter(|v| !v.is_null())
    }

    fn wrong(&self, field: &str, value: &Value) -> WeightError {
        WeightError::config(self.file, field, value.to_string())
    }

    /// A whole number, 0 allowed.
    pub fn count(&self, field: &str, default: usize) -> Result<usize, WeightError> {
        self.get(field).map_or(Ok(default), |v| self.as_count(field, v))
    }

    /// A whole number above 0.
    pub fn size(&self, field: &str, default: usize) -> Result<usize, WeightError> {
        self.get(field).map_or(Ok(default), |v| self.as_size(field, v))
    }

    fn as_count(&self, field: &str, value: &Value) -> Result<usize, WeightError> {
        let n = value.as_u64().and_then(|n| usize::try_from(n).ok());
        n.ok_or_else(|| self.wrong(field, value))
    }

    fn as_size(&self, field: &str, value: &Value) -> Result<usize, WeightError> {
        self.as_count(field, value).and_then(|n| if n > 0 { Ok(n) } else { Err(self.wrong(field, value)) })
    }

    /// A token id. transformers allows a list of end ids; the first counts.
    pub fn id(&self, field: &str, default: u32) -> Result<u32, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default) };
        let first = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        first.as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(|| self.wrong(field, value))
    }

    /// A size that is only a hint: absent or of another form is `None`.
    pub fn optional_size(&self, field: &str) -> Option<usize> {
        self.get(field).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
    }

    pub fn number(&self, field: &str, default: f64) -> Result<f64, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default) };
        value.as_f64().filter(|n| n.is_finite()).ok_or_else(|| self.wrong(field, value))
    }

    pub fn numbers(&self, field: &str) -> Result<Option<Vec<f64>>, WeightError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let list: Option<Vec<f64>> = value.as_array().and_then(|l| l.iter().map(Value::as_f64).collect());
        list.map(Some).ok_or_else(|| WeightError::config(self.file, field, "no list of numbers"))
    }

    pub fn flag(&self, field: &str, default: bool) -> Result<bool, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.wrong(field, value))
    }

    pub fn text(&self, field: &str, default: &str) -> Result<String, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default.to_owned()) };
        value.as_str().map(str::to_owned).ok_or_else(|| self.wrong(field, value))
    }

    pub fn sizes(&self, field: &str, default: &[usize]) -> Result<Vec<usize>, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default.to_vec()) };
        let list = value.as_array().ok_or_else(|| self.wrong(field, value))?;
        list.iter().map(|v| self.as_size(field, v)).collect()
    }

    /// A size, or a list with one size per level that are all the same.
    pub fn uniform(&self, field: &str, default: usize) -> Result<usize, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default) };
        if !value.is_array() {
            return self.as_size(field, value);
        }
        match self.sizes(field, &[])?.as_slice() {
            [first, rest @ ..] if rest.iter().all(|n| n == first) => Ok(*first),
            _ => Err(WeightError::unsupported(self.file, field, value)),
        }
    }

    /// A size for all levels, or one per level.
    pub fn per_level(&self, field: &str, default: usize, levels: usize) -> Result<Vec<usize>, WeightError> {
        match self.get(field) {
            None => Ok(vec![default; levels]),
            Some(value @ Value::Array(list)) => {
                // Lists within lists describe each layer of a level by itself; no SD1.5 model has them.
                if list.iter().any(Value::is_array) {
                    return Err(WeightError::unsupported(self.file, field, value));
                }
                self.sizes(field, &[])
            }
            Some(value) => Ok(vec![self.as_size(field, value)?; levels]),
        }
    }

    /// Which blocks of a list are of the kind with attention, where only two kinds are known.
    pub fn block_types(
        &self,
        field: &str,
        default: &[&str],
        plain: &str,
        attention: &str,
    ) -> Result<Vec<bool>, WeightError> {
        let Some(value) = self.get(field) else { return Ok(default.iter().map(|t| *t == attention).collect()) };
        let list = value.as_array().ok_or_else(|| self.wrong(field, value))?;
        let kind = |v: &Value| match v.as_str() {
            Some(t) if t == attention => Ok(true),
            Some(t) if t == plain => Ok(false),
            _ => Err(WeightError::unsupported(self.file, field, v)),
        };
        list.iter().map(kind).collect()
    }

    /// Refuses any of these fields that is there with another value than those listed (as JSON).
    pub fn fixed(&self, fields: &[(&str, &[&str])]) -> Result<(), WeightError> {
        for (field, allowed) in fields {
            if let Some(value) = self.root.get(*field) {
                let text = value.to_string();
                // A list of the allowed value, one per level, says the same.
                let all_allowed = value.as_array().is_some_and(|list| {
                    !list.is_empty() && list.iter().all(|v| allowed.contains(&v.to_string().as_str()))
                });
                if !allowed.contains(&text.as_str()) && !all_allowed {
                    return Err(WeightError::unsupported(self.file, field, text));
                }
            }
        }
        Ok(())
    }
}
