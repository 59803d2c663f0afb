//! Tables of the schema, grouped by area.

mod businesses;
mod datasets;
mod items;
mod limits;
mod nodes;
mod records;
mod schedules;
mod shards;
mod sources;
mod tasks;

use crate::table::Table;

/// Returns all tables, area by area.
pub(crate) fn tables() -> Vec<Table> {
    let areas = [
        nodes::tables(),
        businesses::tables(),
        tasks::tables(),
        shards::tables(),
        items::tables(),
        sources::tables(),
        limits::tables(),
        schedules::tables(),
        datasets::tables(),
        records::tables(),
    ];
    areas.into_iter().flatten().collect()
}
