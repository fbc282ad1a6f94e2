//! An environment file with an experiment's changes into the model's [`EnvironmentSpec`].

use std::sync::Arc;

use crate::model::{
    Builder, Checksums, ConnectionPath, EnvironmentSpec, FreshMethod, InitOptions, Limits, LocaleProvider,
    Needs, Storage, VersionRange,
};
use crate::spec::bind::bind;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::needs::block_size;
use crate::spec::tree::{Node, Source};
use crate::spec::wire::environment::{
    EngineWord, EnvironmentFile, InitFile, LimitsFile, LocaleProviderWord, ServerFile, StorageFile,
};
use crate::spec::yaml::parse;

/// Majors that loadlab knows.
const SUPPORTED: (u32, u32) = (14, 18);

/// Locales of the builtin provider. Source: PostgreSQL documentation 18, "Locale Support", Locale Providers.
const BUILTIN_LOCALES: [&str; 3] = ["C", "C.UTF-8", "PG_UNICODE_FAST"];

/// An environment file, bound.
#[derive(Debug)]
pub struct EnvironmentAsWritten {
    name: String,
    tree: Node,
    file: EnvironmentFile,
}

/// Reads an environment file.
pub fn read(name: &str, source: &Arc<Source>, found: &mut Diagnostics) -> Option<EnvironmentAsWritten> {
    let tree = match parse(source) {
        Ok(tree) => tree,
        Err(problem) => {
            found.push(*problem);
            return None;
        }
    };
    let file = bind::<EnvironmentFile>(&tree, found).0?;
    Some(EnvironmentAsWritten { name: name.to_owned(), tree, file })
}

impl EnvironmentAsWritten {
    /// The environment with the experiment's `server` laid over it; `tree` is the experiment's. A treatment that needs
    /// another version than the environment has is never run here, so what that version lacks is no mistake.
    pub fn resolve(
        &self,
        server: &ServerFile,
        needs: &Needs,
        tree: &Node,
        found: &mut Diagnostics,
    ) -> Option<EnvironmentSpec> {
        let file = &self.file;
        let allowed = self.versions(found)?;
        let EngineWord::Postgres = file.engine;
        let mut settings: indexmap::IndexMap<_, _> =
            file.settings.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
        settings.extend(server.settings.iter().map(|(name, value)| (name.clone(), value.0.clone())));
        let init = Layers { over: &server.initdb, under: &file.initdb, tree, file_tree: &self.tree };
        let init = init.options(found);
        let runs = needs.allow(allowed);
        let versions =
            if runs { self.versions_with(&init.locale_provider, allowed, tree, found)? } else { allowed };
        let image =
            file.image.as_deref().unwrap_or("postgres:{major}").replace("{major}", &versions.max.to_string());
        let storage = server.storage.as_ref().or(file.storage.as_ref());
        let limits = self.limits(server, tree, found);
        Some(EnvironmentSpec {
            name: self.name.clone(),
            versions,
            image,
            binaries: file.binaries.clone(),
            block_size: self.block_size(server, tree, found),
            builder: server.builder.or(file.builder).map(Builder::from),
            init,
            settings,
            limits,
            storage: match storage {
                None | Some(StorageFile::Layer) => Storage::Layer,
                Some(StorageFile::Volume) => Storage::Volume,
                Some(StorageFile::Tmpfs) => Storage::Tmpfs,
                Some(StorageFile::Bind(path)) => Storage::Bind(path.clone()),
            },
            fresh: server.fresh.or(file.fresh).map_or(FreshMethod::Auto, FreshMethod::from),
            connection: server
                .connection
                .or(file.connection)
                .map_or(ConnectionPath::Socket, ConnectionPath::from),
            client_cpuset: server.client_cpuset.clone().or_else(|| file.client_cpuset.clone()),
            url_variable: file.url_variable.clone().unwrap_or_else(|| "LOADLAB_URL".to_owned()),
        })
    }

    /// The file's tree, for places.
    pub fn tree(&self) -> &Node {
        &self.tree
    }

    fn versions(&self, found: &mut Diagnostics) -> Option<VersionRange> {
        let text = self.file.versions.0.trim();
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        let range =
            min.trim().parse().ok().zip(max.trim().parse().ok()).map(|(min, max)| VersionRange { min, max });
        let supported = |range: &VersionRange| {
            SUPPORTED.0 <= range.min && range.min <= range.max && range.max <= SUPPORTED.1
        };
        let range = range.filter(supported);
        if range.is_none() {
            let problem =
                self.tree.problem("versions", format!("`{text}` is not a range of supported versions"));
            found.push(problem.expected("a major version from 14 to 18, or a range such as \"14-18\""));
        }
        range
    }

    /// The versions that have the locale provider.
    fn versions_with(
        &self,
        provider: &LocaleProvider,
        allowed: VersionRange,
        tree: &Node,
        found: &mut Diagnostics,
    ) -> Option<VersionRange> {
        let since = provider.since();
        if allowed.max >= since {
            return Some(VersionRange { min: allowed.min.max(since), max: allowed.max });
        }
        let (name, key) = match provider {
            LocaleProvider::Builtin(locale) if since > 17 => (locale.as_str(), "builtin_locale"),
            LocaleProvider::Builtin(_) => ("builtin", "locale_provider"),
            LocaleProvider::Icu(_) => ("icu", "locale_provider"),
            LocaleProvider::Libc => ("libc", "locale_provider"),
        };
        let path = format!("server.initdb.{key}");
        let problem = if tree.find(&path).is_some() {
            tree.problem(&path, format!("PostgreSQL {allowed} has no `{name}`"))
        } else {
            self.tree.problem(&format!("initdb.{key}"), format!("PostgreSQL {allowed} has no `{name}`"))
        };
        found.push(
            problem
                .expected(format!("an environment of PostgreSQL {since} or newer"))
                .hint("leave the combination out with `design.exclude`, or name another environment"),
        );
        None
    }

    fn block_size(&self, server: &ServerFile, tree: &Node, found: &mut Diagnostics) -> Option<u32> {
        match (server.block_size, self.file.block_size) {
            (Some(size), _) => block_size(size, tree, "server.block_size", found),
            (None, Some(size)) => block_size(size, &self.tree, "block_size", found),
            (None, None) => None,
        }
    }

    fn limits(&self, server: &ServerFile, tree: &Node, found: &mut Diagnostics) -> Limits {
        check_limits(&self.file.limits, &self.tree, "limits", found);
        check_limits(&server.limits, tree, "server.limits", found);
        check_cpus(self.file.client_cpuset.as_deref(), &self.tree, "client_cpuset", found);
        check_cpus(server.client_cpuset.as_deref(), tree, "server.client_cpuset", found);
        let (over, under) = (&server.limits, &self.file.limits);
        Limits {
            cpus: over.cpus.or(under.cpus),
            cpuset: over.cpuset.clone().or_else(|| under.cpuset.clone()),
            memory_bytes: over.memory.or(under.memory).map(|size| size.0),
            shared_memory_bytes: over.shared_memory.or(under.shared_memory).map(|size| size.0),
        }
    }
}

/// Numbers and rising ranges, as the kernel writes them: `0`, `2-3,6`.
fn is_cpu_list(list: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    list.split(',').all(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        number(from).zip(number(to)).is_some_and(|(from, to)| from <= to)
    })
}

fn check_cpus(list: Option<&str>, tree: &Node, path: &str, found: &mut Diagnostics) {
    if let Some(list) = list.filter(|list| !is_cpu_list(list)) {
        let problem = tree.problem(path, format!("`{list}` is not a list of CPUs"));
        found.push(problem.expected("numbers and ranges such as `0` or `2-3,6`"));
    }
}

fn check_limits(limits: &LimitsFile, tree: &Node, path: &str, found: &mut Diagnostics) {
    if limits.cpus.is_some_and(|cpus| !(cpus > 0.0 && cpus <= 4096.0)) {
        found.push(
            tree.problem(&format!("{path}.cpus"), "a quota of CPUs must be greater than 0")
                .expected("a number such as `1.5`"),
        );
    }
    check_cpus(limits.cpuset.as_deref(), tree, &format!("{path}.cpuset"), found);
    if limits.memory.is_some_and(|size| size.0 < 32 << 20) {
        found.push(
            tree.problem(&format!("{path}.memory"), "a server cannot start in so little memory")
                .expected("at least `32MB`"),
        );
    }
}

/// initdb options of the experiment over those of the environment.
struct Layers<'a> {
    over: &'a InitFile,
    under: &'a InitFile,
    tree: &'a Node,
    file_tree: &'a Node,
}

impl Layers<'_> {
    fn options(&self, found: &mut Diagnostics) -> InitOptions {
        let text = |over: &Option<String>, under: &Option<String>, default: &str| {
            over.clone().or_else(|| under.clone()).unwrap_or_else(|| default.to_owned())
        };
        InitOptions {
            locale: text(&self.over.locale, &self.under.locale, "C"),
            encoding: text(&self.over.encoding, &self.under.encoding, "UTF8"),
            checksums: self.over.checksums.or(self.under.checksums).map_or(Checksums::On, Checksums::from),
            wal_segment_mib: self.segment(found),
            locale_provider: self.provider(found),
        }
    }

    fn provider(&self, found: &mut Diagnostics) -> LocaleProvider {
        let word =
            self.over.locale_provider.or(self.under.locale_provider).unwrap_or(LocaleProviderWord::Libc);
        let (over, under, key, example) = match word {
            LocaleProviderWord::Libc => return LocaleProvider::Libc,
            LocaleProviderWord::Icu => (&self.over.icu_locale, &self.under.icu_locale, "icu_locale", "en-US"),
            LocaleProviderWord::Builtin => {
                (&self.over.builtin_locale, &self.under.builtin_locale, "builtin_locale", "C.UTF-8")
            }
        };
        let Some(locale) = over.as_ref().or(under.as_ref()).cloned() else {
            let (tree, path) = self.place("locale_provider");
            found.push(
                tree.problem(&path, format!("this locale provider needs `{key}`"))
                    .hint(format!("write `{key}: {example}` beside it")),
            );
            return LocaleProvider::Libc;
        };
        if word == LocaleProviderWord::Icu {
            return LocaleProvider::Icu(locale);
        }
        if !BUILTIN_LOCALES.contains(&locale.as_str()) {
            let (tree, path) = self.place("builtin_locale");
            let problem = tree.problem(&path, format!("the builtin provider has no locale `{locale}`"));
            found.push(problem.expected("`C`, `C.UTF-8` or `PG_UNICODE_FAST`"));
        }
        LocaleProvider::Builtin(locale)
    }

    /// The tree that holds an option, and its path there.
    fn place(&self, key: &str) -> (&Node, String) {
        let path = format!("server.initdb.{key}");
        if self.tree.find(&path).is_some() {
            (self.tree, path)
        } else {
            (self.file_tree, format!("initdb.{key}"))
        }
    }

    fn segment(&self, found: &mut Diagnostics) -> Option<u32> {
        let (size, tree, path) = match (self.over.wal_segment_size, self.under.wal_segment_size) {
            (Some(size), _) => (size.0, self.tree, "server.initdb.wal_segment_size"),
            (None, Some(size)) => (size.0, self.file_tree, "initdb.wal_segment_size"),
            (None, None) => return None,
        };
        let mib = u32::try_from(size >> 20).ok().filter(|mib| u64::from(*mib) << 20 == size);
        let mib = mib.filter(|mib| mib.is_power_of_two() && *mib <= 1024);
        if mib.is_none() {
            found.push(
                tree.problem(path, format!("{size} bytes are not the size of a WAL segment"))
                    .expected("a power of two from `1MB` to `1GB`"),
            );
        }
        mib
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Bound, Relation, Scalar};

    use super::*;

    fn written(text: &str) -> (Option<EnvironmentAsWritten>, Diagnostics) {
        let source = Arc::new(Source { name: "environments/x.yaml".to_owned(), text: text.to_owned() });
        let mut found = Diagnostics::default();
        (read("x", &source, &mut found), found)
    }

    fn empty() -> Node {
        parse(&Arc::new(Source { name: "e.yaml".to_owned(), text: "{}".to_owned() })).expect("an empty map")
    }

    #[test]
    fn the_experiment_lies_over_the_environment() {
        let text = "environment: x\nengine: postgres\nversions: 15-17\nimage: mine:{major}\nstorage: {bind: /data}\n\
                    settings: {a: 1, b: 2}\nlimits: {cpus: 2, memory: 1GB}\ninitdb: {checksums: on, wal_segment_size: 64MB}\n";
        let (file, mut found) = written(text);
        let server = ServerFile {
            settings: [("b".to_owned(), crate::spec::wire::scalar::Single(Scalar::Int(3)))]
                .into_iter()
                .collect(),
            ..ServerFile::default()
        };
        let spec = file
            .and_then(|file| file.resolve(&server, &Needs::default(), &empty(), &mut found))
            .expect("resolves");
        assert!(found.is_empty(), "{found}");
        assert_eq!(spec.versions, VersionRange { min: 15, max: 17 });
        assert_eq!(spec.image, "mine:17");
        assert_eq!(spec.storage, Storage::Bind("/data".into()));
        assert_eq!(spec.settings.values().cloned().collect::<Vec<_>>(), [Scalar::Int(1), Scalar::Int(3)]);
        assert_eq!((spec.init.wal_segment_mib, spec.limits.memory_bytes), (Some(64), Some(1 << 30)));
    }

    #[test]
    fn what_an_old_version_lacks_is_no_mistake_where_a_newer_one_is_needed() {
        let text = "environment: x\nengine: postgres\nversions: 15\n\
                    initdb: {locale_provider: builtin, builtin_locale: C.UTF-8}\n";
        let (file, mut found) = written(text);
        let file = file.expect("it is right");
        let newer = Bound { relation: Relation::AtLeast, value: 17, text: ">= 17".to_owned() };
        let needs = Needs { version: Some(newer), ..Needs::default() };
        assert!(file.resolve(&ServerFile::default(), &needs, &empty(), &mut found).is_some(), "{found}");
        assert!(file.resolve(&ServerFile::default(), &Needs::default(), &empty(), &mut found).is_none());
    }

    #[test]
    fn mistakes_are_shown_in_the_environment_file() {
        let (file, mut found) =
            written("environment: x\nengine: postgres\nversions: 13-18\nlimits: {cpuset: a}\n");
        let spec = file
            .and_then(|file| file.resolve(&ServerFile::default(), &Needs::default(), &empty(), &mut found));
        assert!(spec.is_none());
        assert!(found.to_string().contains("environments/x.yaml:3:11"), "{found}");
        let (file, found) = written("environment: x\nengine: mysql\nversion: 15\n");
        assert!(file.is_none());
        let text = found.to_string();
        assert!(text.contains("unknown word `mysql`") && text.contains("did you mean `versions`?"), "{text}");
    }
}
