// References that were made before, in memory and in a folder, by key. A file
// of the folder carries a checksum; one that does not match is made again.
//
// Thread-safe; one caller makes a missing reference while others of the same
// key wait.
#ifndef REGATTA_DEVICE_AGENT_MEASURE_REFERENCE_STORE_H_
#define REGATTA_DEVICE_AGENT_MEASURE_REFERENCE_STORE_H_

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace regatta {

class ReferenceStore {
 public:
  using Maker = std::function<absl::StatusOr<UniqueFd>()>;
  // A sealed memory file with a whole reference file.
  using Reference = std::shared_ptr<const UniqueFd>;

  // Most kept in memory, and most bytes kept in the folder; the longest unused
  // go first.
  static constexpr size_t kInMemory = 8;
  static constexpr int64_t kFolderBytes = int64_t{2} << 30;

  // The folder is made when it is not there; a folder that cannot be used only
  // costs time. What a killed process left half-written is removed. "": memory
  // only.
  explicit ReferenceStore(std::string folder);

  // `key` is a file name. `make` returns a filled memory file, which is sealed
  // here; its error is handed back and the next caller tries again.
  absl::StatusOr<Reference> Get(const std::string& key, const Maker& make);

 private:
  struct Entry {
    std::mutex making;
    Reference reference;  // guarded by `making`
  };

  absl::StatusOr<Reference> LoadOrMake(const std::string& key,
                                       const Maker& make);
  absl::StatusOr<Reference> Load(const std::string& path);
  void Save(const std::string& path, int file);
  void PruneFolder(const std::string& keep);

  const std::string folder_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<Entry>>> entries_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_MEASURE_REFERENCE_STORE_H_
