// Where a spool keeps its bytes: one file that grows at its end.
//
// Not thread-safe: one owner. Offsets and sizes are in bytes. Every method
// reports trouble of the disk as a Status that names the file.
#ifndef REGATTA_DEVICE_AGENT_LOOP_SPOOL_STORAGE_H_
#define REGATTA_DEVICE_AGENT_LOOP_SPOOL_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

class SpoolStorage {
 public:
  struct Range {
    int64_t offset = 0;
    int64_t size = 0;
  };

  virtual ~SpoolStorage() = default;

  virtual absl::StatusOr<int64_t> Size() = 0;
  // Exactly `size` bytes; OutOfRange when the file ends before them.
  virtual absl::StatusOr<std::string> Read(int64_t offset, int64_t size) = 0;
  // Writes at the end. After an error any prefix of `bytes` may be there.
  virtual absl::Status Append(std::string_view bytes) = 0;
  // OK: everything appended so far survives a loss of power. After an error
  // nothing is known about the bytes since the last OK.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Truncate(int64_t size) = 0;
  // Replaces the content by `head` and then these ranges of it, in this order;
  // all or nothing, and durable with the next Sync at the latest. Needs as much
  // room again as it keeps, and only while it works.
  virtual absl::Status Keep(std::string_view head,
                            const std::vector<Range>& ranges) = 0;
};

// A file on disk, created when missing, locked against a second opener for as
// long as the object lives. FailedPrecondition when another process has it.
absl::StatusOr<std::unique_ptr<SpoolStorage>> OpenSpoolFile(
    const std::string& path);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_SPOOL_STORAGE_H_
