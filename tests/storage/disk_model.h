// What a disk would hold if the power went now: a model beside the real files.
//
// A write or truncation is on the disk once its file was synced after it; until
// then any of its 512-byte sectors may be there or not, in any order. A new
// file's name is on the disk once the file was synced; a removal may come
// undone until the name is used again. A sync that fails loses what it should
// have brought to the disk, as Linux does: the next sync does not bring it
// either.
//
// Files that are renamed or removed behind the model's back count as synced
// then. Not thread-safe.
#ifndef REGATTA_TESTS_STORAGE_DISK_MODEL_H_
#define REGATTA_TESTS_STORAGE_DISK_MODEL_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace regatta::testing {

class DiskModel {
 public:
  // Before and after the file system's own opening.
  void Opening(const std::string& path);
  void Opened(const std::string& path);
  void Wrote(const std::string& path, int64_t offset, std::string_view bytes);
  void Truncated(const std::string& path, int64_t size);
  void Synced(const std::string& path);
  void SyncFailed(const std::string& path);
  // Before the removal. `durable`: its folder is synced with it.
  void Deleting(const std::string& path, bool durable);

  enum class Loss {
    kEverything,  // that was not synced
    kSome,        // a random part of it
  };
  // Makes the real files what the disk would hold. REQUIRES: all are closed.
  void CutPower(Loss loss, Random& random) const;

 private:
  struct Change {
    int64_t offset = 0;  // or the size of a truncation
    std::optional<std::string> bytes;
  };
  struct File {
    bool present = false;  // as far as the model was told
    ino_t inode = 0;
    bool name_synced = false;
    std::string synced;  // contents
    std::vector<Change> unsynced;
    // Contents from before a removal that may come undone.
    std::optional<std::string> removed;
  };
  static void Apply(const Change& change, std::string& bytes);
  static std::string WithSome(const File& file, Random& random);

  std::map<std::string, File> files_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_STORAGE_DISK_MODEL_H_
