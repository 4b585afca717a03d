//! The driver's library.

use super::CUresult;
use libloading::Library;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
const NAME: &str = "libcuda.so.1";
#[cfg(windows)]
const NAME: &str = "nvcuda.dll";
#[cfg(not(any(target_os = "linux", windows)))]
const NAME: &str = "libcuda.dylib";

/// Opens the driver's library, unless an earlier call has.
///
/// # Errors
/// The system loader's reason that it cannot be opened. The result stays the same for the lifetime of the program.
///
/// ```
/// match cust::sys::open() {
///     Ok(()) => println!("there is a driver"),
///     Err(reason) => println!("there is none: {reason}"),
/// }
/// ```
pub fn open() -> Result<(), &'static str> {
    library().map(|_| ())
}

fn library() -> Result<&'static Library, &'static str> {
    static OPENED: OnceLock<Result<Library, String>> = OnceLock::new();
    // SAFETY: opening a library runs its initialisers. Those of the NVIDIA driver may run in any program at any time.
    let opened = OPENED.get_or_init(|| unsafe { Library::new(NAME) }.map_err(|error| error.to_string()));
    opened.as_ref().map_err(String::as_str)
}

/// The driver's function `name`, which ends in a zero byte, or the status to return instead.
///
/// # Safety
/// `F` is the type of a pointer to that function.
pub(super) unsafe fn function<F: Copy>(name: &str) -> Result<F, CUresult> {
    let library = library().map_err(|_| CUresult::CUDA_ERROR_NO_DEVICE)?;
    // SAFETY: `F` is the function's type, by `# Safety`. The library is never closed, so the copy of the pointer stays
    // valid.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| CUresult::CUDA_ERROR_NOT_FOUND)
}
