#include "device_agent/measure/reference_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "base/system_error.h"

namespace regatta {
namespace {

namespace fs = std::filesystem;

// A file of the folder: SHA-256 of the rest in hexadecimal, a line feed, the
// rest.
constexpr size_t kChecksumBytes = 65;
constexpr char kSuffix[] = ".reference";

// What killed processes had begun to write. (What another one writes just now
// costs it a warning.)
void RemoveUnfinished(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.path().stem().extension() == kSuffix) {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

ReferenceStore::ReferenceStore(std::string folder)
    : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    LOG(kWarning) << "references are not kept: " << folder_ << ": "
                  << error.message();
  }
  RemoveUnfinished(folder_);
}

absl::StatusOr<ReferenceStore::Reference> ReferenceStore::Get(
    const std::string& key, const Maker& make) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found =
        std::find_if(entries_.begin(), entries_.end(),
                     [&](const auto& kept) { return kept.first == key; });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
    } else {
      entries_.emplace_front(key, std::make_shared<Entry>());
      if (entries_.size() > kInMemory) entries_.pop_back();
    }
    entry = entries_.front().second;
  }
  std::lock_guard<std::mutex> making(entry->making);
  if (entry->reference == nullptr) {
    ASSIGN_OR_RETURN(entry->reference, LoadOrMake(key, make));
  }
  return entry->reference;
}

absl::StatusOr<ReferenceStore::Reference> ReferenceStore::LoadOrMake(
    const std::string& key, const Maker& make) {
  const std::string path =
      folder_.empty() ? "" : absl::StrCat(folder_, "/", key, kSuffix);
  if (!path.empty()) {
    absl::StatusOr<Reference> loaded = Load(path);
    if (loaded.ok()) return loaded;
    if (!absl::IsNotFound(loaded.status())) {
      LOG(kWarning) << path << ": " << loaded.status().message()
                    << "; it is made again";
    }
  }
  ASSIGN_OR_RETURN(UniqueFd file, make());
  RETURN_IF_ERROR(SealMemoryFile(file.get()));
  if (!path.empty()) Save(path, file.get());
  return std::make_shared<const UniqueFd>(std::move(file));
}

absl::StatusOr<ReferenceStore::Reference> ReferenceStore::Load(
    const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return absl::NotFoundError("not there");
  ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Map(file.get()));
  const std::string_view bytes = mapped.bytes();
  if (bytes.size() < kChecksumBytes) return absl::DataLossError("truncated");
  const std::string_view content = bytes.substr(kChecksumBytes);
  if (Sha256Hex(content) != bytes.substr(0, kChecksumBytes - 1)) {
    return absl::DataLossError("its checksum does not match");
  }
  std::error_code error;  // marks it as used; only pruning asks
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  ASSIGN_OR_RETURN(UniqueFd memory, SealedMemoryFile("reference", content));
  return std::make_shared<const UniqueFd>(std::move(memory));
}

void ReferenceStore::Save(const std::string& path, int file) {
  const absl::StatusOr<MappedFile> mapped = MappedFile::Map(file);
  if (!mapped.ok()) return;
  FileBeside out(path, absl::StrCat(path, ".", getpid()));
  int error = out.Open(0600);
  if (error == 0) error = out.Append(Sha256Hex(mapped->bytes()) + "\n");
  if (error == 0) error = out.Append(mapped->bytes());
  if (error == 0) error = out.Commit();
  if (error != 0) {
    LOG(kWarning) << "a reference is not kept: "
                  << FileError(path, "write", error).message();
  }
  PruneFolder(path);
}

void ReferenceStore::PruneFolder(const std::string& keep) {
  struct File {
    fs::file_time_type used;
    fs::path path;
    int64_t bytes;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kSuffix) continue;
    std::error_code gone;
    const File file = {entry.last_write_time(gone), entry.path(),
                       static_cast<int64_t>(entry.file_size(gone))};
    if (gone) continue;
    files.push_back(file);
    total += file.bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= kFolderBytes) return;
    if (file.path == keep) continue;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace regatta
