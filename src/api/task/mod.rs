//! Task resources: views, changes, failures and reports.

mod changes;
mod costs;
mod explain;
mod failures;
mod history;
mod live;
mod report;
mod requests;
mod stats;
mod steering;
mod view;
mod window;

pub use self::changes::*;
pub use self::costs::*;
pub use self::explain::*;
pub use self::failures::*;
pub use self::history::*;
pub use self::live::*;
pub use self::report::*;
pub use self::requests::*;
pub use self::stats::*;
pub use self::steering::*;
pub use self::view::*;
pub use self::window::*;
