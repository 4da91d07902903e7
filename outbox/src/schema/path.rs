//! A place in a payload.

use std::fmt;

/// The steps from the payload to the place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path {
    steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field of this name.
    Field(String),
    /// Any item of a list.
    Item,
    /// A place of a tuple.
    Place(usize),
    /// Any entry of a map.
    Entry,
}

impl Path {
    pub(super) fn field(&self, name: &str) -> Self {
        self.with(Step::Field(name.to_owned()))
    }

    pub(super) fn item(&self) -> Self {
        self.with(Step::Item)
    }

    pub(super) fn place(&self, index: usize) -> Self {
        self.with(Step::Place(index))
    }

    pub(super) fn entry(&self) -> Self {
        self.with(Step::Entry)
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { steps }
    }

    /// Where the place's object is, and the field's name; `None` for what is no field.
    pub(super) fn parent(&self) -> Option<(&[Step], &str)> {
        match self.steps.split_last() {
            Some((Step::Field(name), parent)) => Some((parent, name)),
            _ => None,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(name) if index == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item => f.write_str("[]")?,
                Step::Place(place) => write!(f, "[{place}]")?,
                Step::Entry => f.write_str("{}")?,
            }
        }
        Ok(())
    }
}
