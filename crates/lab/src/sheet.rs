//! A study's page in the making, with the tables and plots that go with it as files of their own.

use serde::Serialize;

use crate::svg::Plot;
use crate::table::Table;

/// Files to read: their names and contents.
pub(crate) type Files = Vec<(String, String)>;

/// The page, and what goes with it.
pub(crate) struct Sheet {
    page: String,
    files: Files,
}

impl Sheet {
    /// A page that begins so.
    pub(crate) fn new(opening: String) -> Self {
        Self {
            page: opening,
            files: Files::new(),
        }
    }

    /// A heading, and what is to be said under it.
    pub(crate) fn section(&mut self, title: &str, words: &str) {
        self.page += &format!("## {title}\n\n{words}\n\n");
    }

    pub(crate) fn table(&mut self, table: &Table) {
        self.page += &table.markdown();
        self.page.push('\n');
        self.files
            .push((format!("{}.csv", table.file), table.csv()));
    }

    pub(crate) fn tables<'t>(&mut self, tables: impl IntoIterator<Item = &'t Table>) {
        tables.into_iter().for_each(|table| self.table(table));
    }

    /// A plot, which is called so where it cannot be seen, and what is to be said of it.
    pub(crate) fn plot(&mut self, (file, called): (&str, &str), plot: &Plot, words: &str) {
        self.page += &format!("![{called}]({file}.svg)\n\n");
        if !words.is_empty() {
            self.page += &format!("{words}\n\n");
        }
        self.files.push((format!("{file}.svg"), plot.render()));
    }

    /// All files: the page of the study of this name, and its results for programs.
    ///
    /// # Errors
    /// Where the results cannot be put as JSON.
    pub(crate) fn close(
        self,
        study: &str,
        results: &impl Serialize,
    ) -> Result<Files, serde_json::Error> {
        let mut files = self.files;
        files.push((
            format!("{study}.md"),
            self.page.trim_end().to_owned() + "\n",
        ));
        let results = serde_json::to_string_pretty(results)? + "\n";
        files.push(("results.json".into(), results));
        Ok(files)
    }
}
