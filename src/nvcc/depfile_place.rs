//! A call of nvcc -> the same with another place for its dependency file.

use super::invocation::Invocation;
use super::options;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

impl Invocation {
    /// Returns the arguments by which nvcc writes its dependency file to `place`, and the path
    /// where the caller expects that file; `None` if nvcc writes no file or more than one, or
    /// if the arguments alone do not name it.
    pub fn with_depfile_at(&self, place: &Path) -> Option<(Vec<OsString>, PathBuf)> {
        let mut arguments = self.arguments.clone();
        let mut named = self.depfile_values();
        match (named.next(), named.next()) {
            (None, _) => {
                arguments.extend(["-MF".into(), place.into()]);
                Some((arguments, self.only_depfile()?))
            }
            (Some((index, option, value)), None) if Some(&value) == self.dependency_output.as_ref() => {
                let mut word = OsString::from(option);
                word.push(place);
                arguments[index] = word;
                Some((arguments, value)).filter(|_| self.writes_dependencies)
            }
            // nvcc warns of several values; those of an option file cannot be replaced.
            _ => None,
        }
    }

    /// Returns the path of the dependency file of a call that does not name it.
    fn only_depfile(&self) -> Option<PathBuf> {
        let is_alone = self.sources.len() == 1 && self.host_sources == 0 && self.dependency_output.is_none();
        // nvcc takes a file name that begins with a dot for an extension.
        let is_usual = |path: &&PathBuf| !path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        let depfiles = self.depfiles();
        depfiles.first().filter(|path| is_alone && is_usual(path) && self.output.as_ref() != Some(path)).cloned()
    }

    /// The values of `-MF` among the arguments: the index of the word, what the word has before
    /// the value, and the value.
    fn depfile_values(&self) -> impl Iterator<Item = (usize, &str, PathBuf)> {
        let mut words = self.arguments.iter().enumerate();
        std::iter::from_fn(move || {
            loop {
                let (index, word) = words.next()?;
                let Some((option, glued)) = word.to_str().and_then(options::lookup) else { continue };
                let (index, before, value) = match (option.arity, glued, word.to_str()) {
                    (options::Arity::Flag, _, _) => continue,
                    (_, Some(value), Some(word)) => (index, &word[..word.len() - value.len()], value.into()),
                    _ => words.next().map(|(index, value)| (index, "", PathBuf::from(value)))?,
                };
                if option.short == "-MF" {
                    return Some((index, before, value));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depfile_gets_another_place_where_the_arguments_name_it() {
        for (line, expected) in [
            ("-MD -c a.cu -o b/a.x.o", Some(("-MD -c a.cu -o b/a.x.o -MF /t/d", "b/a.x.d"))),
            ("-MMD -c a.cu", Some(("-MMD -c a.cu -MF /t/d", "./a.d"))),
            ("-MD -MF x.d -c a.cu b.cu", Some(("-MD -MF /t/d -c a.cu b.cu", "x.d"))),
            ("-MD --dependency-output=x.d a.cu", Some(("-MD --dependency-output=/t/d a.cu", "x.d"))),
            ("-MD -Xcompiler -MF -c a.cu -o a.o", Some(("-MD -Xcompiler -MF -c a.cu -o a.o -MF /t/d", "a.d"))),
            ("-c a.cu -o a.o", None),
            ("-MF x.d -c a.cu", None),
            ("-MD -c a.cu b.cu", None),
            ("-MD a.cu b.cpp -o a", None),
            ("-MD -MF x.d -MF y.d -c a.cu", None),
            ("-MD -c a.cu -o .a", None),
            ("-MD -c a.cu -o a.d", None),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let invocation = Invocation::new(&words, None, None).expect("no option files are named");
            let placed = invocation.with_depfile_at(Path::new("/t/d"));
            let expected = expected
                .map(|(line, path)| (line.split(' ').map(OsString::from).collect::<Vec<_>>(), PathBuf::from(path)));
            assert_eq!(placed, expected, "{line}");
        }
        let words = ["-MD", "-c", "a.cu"].map(OsString::from);
        let invocation = Invocation::new(&words, Some("-MF x.d".as_ref()), None).expect("no option files are named");
        assert_eq!(invocation.with_depfile_at(Path::new("/t/d")), None);
    }
}
