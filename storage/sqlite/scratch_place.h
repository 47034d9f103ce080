// Where a copy of the log stands for the moment in which it is read out.
#ifndef REGATTA_STORAGE_SQLITE_SCRATCH_PLACE_H_
#define REGATTA_STORAGE_SQLITE_SCRATCH_PLACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace regatta::sqlite {

// Bytes that this process may yet write into the folder; negative: nothing may
// be made there.
int64_t RoomIn(const std::string& folder);

// The first of the folders that has room for so many bytes. ResourceExhausted:
// none has; says how much each has, and how to name another.
absl::StatusOr<std::string> ScratchFolder(
    const std::vector<std::string>& folders, int64_t bytes,
    const std::function<int64_t(const std::string&)>& room = RoomIn);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_SCRATCH_PLACE_H_
