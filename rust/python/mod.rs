//! The boundary to Python: `fastpart._core`. Nothing else in the crate knows Python, and nothing here decides
//! anything about graphs; the public functions, their checks and docs live in `python/fastpart`.

mod clustering;
mod convert;
mod counts;
mod edges;
mod errors;
mod files;
mod generate;
mod homes;
mod partitioners;
mod partitions;
mod results;
mod run;
mod store;
mod values;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_PARTS", crate::capacity::MAX_PARTS)?;
    edges::register(module)?;
    partitions::register(module)?;
    partitioners::register(module)?;
    clustering::register(module)?;
    counts::register(module)?;
    convert::register(module)?;
    generate::register(module)?;
    homes::register(module)?;
    files::register(module)?;
    store::register(module)?;
    // What is public is said by the package, not here.
    module.delattr("__all__")
}
