//! The system calls of Linux on x86-64 that have a file, and the errors that each of them can return.

use nix::errno::Errno::{self, *};

/// An argument that names a file.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// A descriptor.
    Open(usize),
    /// The address of a path.
    Path(usize),
}
use Arg::{Open, Path};

/// A kind of system calls.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub number: i64,
    /// The arguments that name a file. The first in the folder counts.
    pub files: &'static [Arg],
    /// The argument with the number of bytes, if fewer may be read or written.
    pub count: Option<usize>,
    pub errors: &'static [Errno],
}

macro_rules! kinds {
    ($($name:ident $number:ident [$($file:expr),*] $count:expr, [$($error:expr),*];)*) => {
        &[$(Kind {
            name: stringify!($name),
            number: nix::libc::$number,
            files: &[$($file),*],
            count: $count,
            errors: &[$($error),*],
        }),*]
    };
}

/// All kinds of calls that are counted.
pub const KINDS: &[Kind] = kinds! {
    openat SYS_openat [Path(1)] None, [EACCES, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, EOPNOTSUPP, EROFS];
    close SYS_close [Open(0)] None, [EIO];
    read SYS_read [Open(0)] Some(2), [EINTR, EIO];
    pread64 SYS_pread64 [Open(0)] Some(2), [EINTR, EIO];
    readv SYS_readv [Open(0)] Some(2), [EINTR, EIO];
    preadv SYS_preadv [Open(0)] Some(2), [EINTR, EIO];
    write SYS_write [Open(0)] Some(2), [EDQUOT, EFBIG, EINTR, EIO, ENOSPC];
    pwrite64 SYS_pwrite64 [Open(0)] Some(2), [EDQUOT, EFBIG, EINTR, EIO, ENOSPC];
    writev SYS_writev [Open(0)] Some(2), [EDQUOT, EFBIG, EINTR, EIO, ENOSPC];
    pwritev SYS_pwritev [Open(0)] Some(2), [EDQUOT, EFBIG, EINTR, EIO, ENOSPC];
    copy_file_range SYS_copy_file_range [Open(2), Open(0)] Some(4), [EIO, ENOSPC, ENOSYS, EOPNOTSUPP, EXDEV];
    sendfile SYS_sendfile [Open(0), Open(1)] Some(3), [EINVAL, EIO, ENOSYS];
    splice SYS_splice [Open(2), Open(0)] Some(4), [EINVAL, EIO, ENOMEM];
    lseek SYS_lseek [Open(0)] None, [ESPIPE];
    mmap SYS_mmap [Open(4)] None, [EACCES, ENODEV, ENOMEM];
    fallocate SYS_fallocate [Open(0)] None, [EFBIG, EINTR, EIO, ENOSPC, EOPNOTSUPP];
    ftruncate SYS_ftruncate [Open(0)] None, [EFBIG, EINTR, EIO];
    truncate SYS_truncate [Path(0)] None, [EACCES, EIO];
    fsync SYS_fsync [Open(0)] None, [EDQUOT, EINTR, EIO, ENOSPC];
    fdatasync SYS_fdatasync [Open(0)] None, [EDQUOT, EINTR, EIO, ENOSPC];
    syncfs SYS_syncfs [Open(0)] None, [EIO];
    sync_file_range SYS_sync_file_range [Open(0)] None, [EIO];
    fadvise64 SYS_fadvise64 [Open(0)] None, [EINVAL];
    flock SYS_flock [Open(0)] None, [EINTR, ENOLCK];
    fcntl SYS_fcntl [Open(0)] None, [EACCES, EMFILE];
    ioctl SYS_ioctl [Open(0)] None, [ENOTTY];
    stat SYS_stat [Path(0)] None, [EACCES, EIO, ENOMEM];
    lstat SYS_lstat [Path(0)] None, [EACCES, EIO, ENOMEM];
    fstat SYS_fstat [Open(0)] None, [EIO, ENOMEM];
    newfstatat SYS_newfstatat [Path(1), Open(0)] None, [EACCES, EIO, ENOMEM];
    statx SYS_statx [Path(1), Open(0)] None, [EACCES, EIO, ENOMEM];
    statfs SYS_statfs [Path(0)] None, [EACCES, EINTR, EIO];
    fstatfs SYS_fstatfs [Open(0)] None, [EINTR, EIO];
    faccessat SYS_faccessat [Path(1)] None, [EACCES, EIO];
    faccessat2 SYS_faccessat2 [Path(1)] None, [EACCES, EIO];
    readlink SYS_readlink [Path(0)] None, [EACCES, EINVAL, EIO];
    readlinkat SYS_readlinkat [Path(1)] None, [EACCES, EINVAL, EIO];
    getdents64 SYS_getdents64 [Open(0)] None, [EIO];
    link SYS_link [Path(1), Path(0)] None, [EACCES, EDQUOT, EIO, EMLINK, ENOENT, ENOSPC, EPERM];
    linkat SYS_linkat [Path(3), Path(1)] None, [EACCES, EDQUOT, EIO, EMLINK, ENOENT, ENOSPC, EPERM];
    rename SYS_rename [Path(1), Path(0)] None, [EACCES, EIO, ENOSPC, EPERM, EXDEV];
    renameat SYS_renameat [Path(3), Path(1)] None, [EACCES, EIO, ENOSPC, EPERM, EXDEV];
    renameat2 SYS_renameat2 [Path(3), Path(1)] None, [EACCES, EINVAL, EIO, ENOSPC, ENOSYS, EPERM];
    unlink SYS_unlink [Path(0)] None, [EACCES, EIO, EPERM];
    unlinkat SYS_unlinkat [Path(1)] None, [EACCES, EIO, EPERM];
    mkdir SYS_mkdir [Path(0)] None, [EACCES, EIO, ENOSPC];
    mkdirat SYS_mkdirat [Path(1)] None, [EACCES, EIO, ENOSPC];
    fchmod SYS_fchmod [Open(0)] None, [EIO, EPERM];
    fchown SYS_fchown [Open(0)] None, [EIO, EPERM];
    utimensat SYS_utimensat [Path(1), Open(0)] None, [EACCES, EIO];
    getxattr SYS_getxattr [Path(0)] None, [EIO, EOPNOTSUPP];
    lgetxattr SYS_lgetxattr [Path(0)] None, [EIO, EOPNOTSUPP];
    fgetxattr SYS_fgetxattr [Open(0)] None, [EIO, EOPNOTSUPP];
    setxattr SYS_setxattr [Path(0)] None, [EIO, ENOSPC, EOPNOTSUPP, EPERM];
    fsetxattr SYS_fsetxattr [Open(0)] None, [EIO, ENOSPC, EOPNOTSUPP, EPERM];
    listxattr SYS_listxattr [Path(0)] None, [EIO, EOPNOTSUPP];
    llistxattr SYS_llistxattr [Path(0)] None, [EIO, EOPNOTSUPP];
    flistxattr SYS_flistxattr [Open(0)] None, [EIO, EOPNOTSUPP];
    removexattr SYS_removexattr [Path(0)] None, [EIO, EOPNOTSUPP];
    fremovexattr SYS_fremovexattr [Open(0)] None, [EIO, EOPNOTSUPP];
};
