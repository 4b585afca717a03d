//! The attributes that a new file takes over from the file that it replaces: owner, group, mode, access control list,
//! user attributes and security labels.
//!
//! Where the system refuses some attributes, the new file grants nobody but its owner more access than the old file
//! did.

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

/// The extended attribute that holds a POSIX access control list.
const ACL: &str = "system.posix_acl_access";
/// The security labels that belong to a file's name and purpose, not to its content.
const LABELS: [&[u8]; 2] = [b"security.selinux", b"security.SMACK64"];
/// Bytes that Linux allows for the names of all extended attributes of a file, and for the value of each.
const XATTR_LIMIT: usize = 1 << 16;

const SET_ID: u32 = 0o6000;

/// The attributes of a file.
#[derive(Debug)]
pub struct Attributes {
    user: u32,
    group: u32,
    /// With an access control list, the group bits of the mode are the mask of the list, not the rights of the group.
    mode: u32,
    acl: Option<Vec<u8>>,
    /// Names and values of user attributes and labels.
    extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The access attributes that a new file could take over.
#[derive(Clone, Copy, Debug)]
struct Kept {
    user: bool,
    group: bool,
    acl: bool,
}

impl Attributes {
    /// The attributes of the file at `path`.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            user: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.mode() & 0o7777,
            acl: acl(path)?,
            extended: extended(path),
        })
    }

    /// Gives these attributes to `file`, which this process has created.
    pub fn apply(&self, file: &File) -> io::Result<()> {
        let (user, group) = self.give(file)?;
        // The list's entry for the owning group holds the rights of the old file's group.
        let acl = group && self.acl.as_ref().is_some_and(|acl| set(file, ACL.as_bytes(), acl).is_ok());
        if !acl {
            // A new file has an access control list if its folder has a default list.
            remove_acl(file)?;
        }
        for (name, value) in &self.extended {
            // These attributes grant no access, and the file is useful without them.
            let _ = set(file, name, value);
        }
        let mode = self.mode(Kept { user, group, acl });
        // Some file systems have a single fixed mode, and refuse to set even that mode.
        if file.metadata()?.mode() & 0o7777 != mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// Gives `file` to the owner and the group, as far as the system permits. Returns whether the file has that owner,
    /// and whether it has that group.
    fn give(&self, file: &File) -> io::Result<(bool, bool)> {
        if fchown(file, Some(self.user), Some(self.group)).is_err() {
            // Only the superuser can give files away, but an owner may choose among the groups that they belong to.
            let _ = fchown(file, None, Some(self.group));
        }
        let new = file.metadata()?;
        Ok((new.uid() == self.user, new.gid() == self.group))
    }

    /// The mode of a new file that has taken over only the attributes in `kept`.
    fn mode(&self, kept: Kept) -> u32 {
        // A program must not run with the rights of another user or group than before.
        let mode = if kept.user && kept.group { self.mode } else { self.mode & !SET_ID };
        if self.acl.is_some() && !kept.acl {
            // The list may deny access to users to whom the mode's bits for others would grant it.
            return mode & !0o077;
        }
        if kept.group {
            return mode;
        }
        // Members of the new group were others before, and members of the old group are others now.
        let common = mode >> 3 & mode & 0o7;
        mode & !0o077 | common << 3 | common
    }
}

/// The access control list of the file at `path`, if it has one beyond its mode.
fn acl(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match get(path, ACL.as_bytes()) {
        Ok(acl) => Ok(Some(acl)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The user attributes and security labels of the file at `path` that can be read.
fn extended(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; XATTR_LIMIT];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..length].split(|&byte| byte == 0);
    let wanted = names.filter(|name| name.starts_with(b"user.") || LABELS.contains(name));
    wanted.filter_map(|name| Some((name.to_vec(), get(path, name).ok()?))).collect()
}

fn get(path: &Path, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
    let mut value = vec![0; XATTR_LIMIT];
    let length = rustix::fs::getxattr(path, name, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

fn set(file: &File, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())
}

fn remove_acl(file: &File) -> io::Result<()> {
    match rustix::fs::fremovexattr(file, ACL) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(old: u32, acl: Option<Vec<u8>>, kept: Kept) -> u32 {
        Attributes { user: 1, group: 2, mode: old, acl, extended: Vec::new() }.mode(kept)
    }

    #[test]
    fn a_mode_grants_no_more_than_before() {
        let all = Kept { user: true, group: true, acl: false };
        let (no_user, no_group) = (Kept { user: false, ..all }, Kept { group: false, ..all });
        for (old, kept, expected) in [
            (0o6755, all, 0o6755),
            (0o6770, no_user, 0o770),
            (0o1666, no_user, 0o1666),
            (0o2660, no_group, 0o600),
            (0o4664, no_group, 0o644),
            // The old file granted others rights that it refused to members of the group.
            (0o604, no_group, 0o600),
            (0o653, no_group, 0o611),
        ] {
            assert_eq!(mode(old, None, kept), expected, "{old:o} {kept:?}");
        }
    }

    #[test]
    fn the_mask_of_a_list_is_not_the_rights_of_a_group() {
        let all = Kept { user: true, group: true, acl: true };
        assert_eq!(mode(0o664, Some(vec![]), all), 0o664);
        assert_eq!(mode(0o664, Some(vec![]), Kept { acl: false, ..all }), 0o600);
        assert_eq!(mode(0o664, Some(vec![]), Kept { acl: false, group: false, ..all }), 0o600);
    }
}
