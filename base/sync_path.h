// Bytes and names that outlast a power failure.
#ifndef REGATTA_BASE_SYNC_PATH_H_
#define REGATTA_BASE_SYNC_PATH_H_

#include <string>

namespace regatta {

// fsync(2) of the file or folder at `path`. 0, or the system's error.
int SyncPath(const std::string& path);

// The same for the folder that `path` is in: a file that was made, renamed or
// removed there is so after a power failure, too.
int SyncFolderOf(const std::string& path);

}  // namespace regatta

#endif  // REGATTA_BASE_SYNC_PATH_H_
