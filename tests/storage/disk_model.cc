#include "tests/storage/disk_model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/process.h"

namespace regatta::testing {
namespace {

constexpr int64_t kSectorBytes = 512;

// 0: no such file.
ino_t InodeOf(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

void DiskModel::Opening(const std::string& path) {
  File& file = files_[path];
  const ino_t inode = InodeOf(path);
  if (inode == 0) {
    // About to be made, if at all.
    if (file.present) file = File{};
    return;
  }
  if (file.present && file.inode == inode) return;
  file = File{.present = true,
              .inode = inode,
              .name_synced = true,
              .synced = ReadFile(path)};
}

void DiskModel::Opened(const std::string& path) {
  File& file = files_[path];
  if (file.present) return;
  file.present = true;
  file.inode = InodeOf(path);
}

void DiskModel::Wrote(const std::string& path, int64_t offset,
                      std::string_view bytes) {
  files_[path].unsynced.push_back({offset, std::string(bytes)});
}

void DiskModel::Truncated(const std::string& path, int64_t size) {
  files_[path].unsynced.push_back({size, std::nullopt});
}

void DiskModel::Synced(const std::string& path) {
  File& file = files_[path];
  for (const Change& change : file.unsynced) Apply(change, file.synced);
  file.unsynced.clear();
  file.name_synced = true;
  file.removed.reset();
}

void DiskModel::SyncFailed(const std::string& path) {
  files_[path].unsynced.clear();
}

void DiskModel::Deleting(const std::string& path, bool durable) {
  File& file = files_[path];
  const bool may_return = file.present && file.name_synced && !durable;
  std::optional<std::string> removed;
  if (may_return) removed = file.synced;
  file = File{.removed = std::move(removed)};
}

void DiskModel::Apply(const Change& change, std::string& bytes) {
  if (!change.bytes.has_value()) {
    bytes.resize(change.offset);
    return;
  }
  const size_t end = change.offset + change.bytes->size();
  if (bytes.size() < end) bytes.resize(end);
  bytes.replace(change.offset, change.bytes->size(), *change.bytes);
}

std::string DiskModel::WithSome(const File& file, Random& random) {
  std::string bytes = file.synced;
  for (const Change& change : file.unsynced) {
    const uint64_t fate = random.Below(4);
    if (fate == 0) continue;  // lost
    if (fate == 1 || !change.bytes.has_value()) {
      Apply(change, bytes);
      continue;
    }
    // Torn: sector by sector.
    const int64_t end =
        change.offset + static_cast<int64_t>(change.bytes->size());
    for (int64_t at = change.offset; at < end;) {
      const int64_t next =
          std::min(end, (at / kSectorBytes + 1) * kSectorBytes);
      if (random.Below(2) == 0) {
        Apply({at, change.bytes->substr(at - change.offset, next - at)}, bytes);
      }
      at = next;
    }
  }
  return bytes;
}

void DiskModel::CutPower(Loss loss, Random& random) const {
  for (const auto& [path, file] : files_) {
    const ino_t inode = InodeOf(path);
    const bool some = loss == Loss::kSome;
    if (!file.present) {
      const bool returns = inode == 0 && file.removed.has_value() &&
                           (!some || random.Below(2) == 0);
      if (returns) WriteFile(path, *file.removed);
      continue;
    }
    if (inode != file.inode) continue;  // renamed or removed behind our back
    if (!file.name_synced && (!some || random.Below(2) == 0)) {
      unlink(path.c_str());
      continue;
    }
    WriteFile(path, some ? WithSome(file, random) : file.synced);
  }
}

}  // namespace regatta::testing
