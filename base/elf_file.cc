#include "base/elf_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace regatta {
namespace {

constexpr char kCache[] = "/etc/ld.so.cache";
// Of glibc since 2.2; older forms may stand before it.
constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";
struct CacheHeader {
  char magic[20];
  uint32_t entries;
  uint32_t string_bytes;
  uint32_t unused[5];
};
struct CacheEntry {
  int32_t flags;
  uint32_t name;  // both from the header's begin
  uint32_t path;
  uint32_t os_version;
  uint64_t hardware;
};

template <typename Value>
bool ReadAt(int file, uint64_t offset, Value* value) {
  return pread(file, value, sizeof(*value), static_cast<off_t>(offset)) ==
         sizeof(*value);
}

// This process's own: dl_iterate_phdr gives its headers, not this.
uint16_t OwnMachine() {
  static const uint16_t machine = [] {
    const UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    ElfW(Ehdr) header;
    return file.valid() && ReadAt(file.get(), 0, &header) ? header.e_machine
                                                          : uint16_t{EM_NONE};
  }();
  return machine;
}

// The header, where the loader would go on with this file.
std::optional<ElfW(Ehdr)> LoadableHeader(int file) {
  constexpr uint8_t kWidth = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  ElfW(Ehdr) header;
  if (!ReadAt(file, 0, &header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != kWidth ||
      header.e_phentsize != sizeof(ElfW(Phdr)) ||
      header.e_machine != OwnMachine()) {
    return std::nullopt;
  }
  return header;
}

bool IsLoadable(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() && LoadableHeader(file.get()).has_value();
}

// "" when the cache has none.
std::string FindInCache(std::string_view name) {
  std::ifstream stream(kCache, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  const size_t begin = file.find(kCacheMagic);
  if (begin == std::string::npos) return "";
  const std::string_view cache = std::string_view(file).substr(begin);
  CacheHeader header;
  if (cache.size() < sizeof(header)) return "";
  std::memcpy(&header, cache.data(), sizeof(header));
  const auto text = [&](uint32_t offset) {
    if (offset >= cache.size()) return std::string_view();
    const std::string_view rest = cache.substr(offset);
    return rest.substr(0, rest.find('\0'));
  };
  const uint64_t most = (cache.size() - sizeof(header)) / sizeof(CacheEntry);
  for (uint64_t i = 0; i < std::min<uint64_t>(header.entries, most); ++i) {
    CacheEntry entry;
    std::memcpy(&entry, cache.data() + sizeof(header) + i * sizeof(entry),
                sizeof(entry));
    if (text(entry.name) != name) continue;
    const std::string path(text(entry.path));
    // Others are for other processors.
    if (IsLoadable(path)) return path;
  }
  return "";
}

struct SearchFolder {
  std::string path;
  bool is_default;
};

std::vector<SearchFolder> SearchFolders() {
  std::vector<SearchFolder> folders;
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size;
  if (self == nullptr || dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) {
    return folders;
  }
  // Room for the structure that is written, aligned as it must be.
  std::vector<std::max_align_t> room(size.dls_size / sizeof(std::max_align_t) +
                                     1);
  auto* info = reinterpret_cast<Dl_serinfo*>(room.data());
  *info = size;
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) == 0 &&
      dlinfo(self, RTLD_DI_SERINFO, info) == 0) {
    for (unsigned i = 0; i < info->dls_cnt; ++i) {
      folders.push_back(
          {info->dls_serpath[i].dls_name,
           (info->dls_serpath[i].dls_flags & LA_SER_DEFAULT) != 0});
    }
  }
  dlclose(self);
  return folders;
}

}  // namespace

absl::Status CheckElfWhole(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode)) {
    return absl::OkStatus();
  }
  const auto header = LoadableHeader(file.get());
  if (!header.has_value()) return absl::OkStatus();
  const auto there = static_cast<uint64_t>(info.st_size);
  uint64_t wanted =
      header->e_phoff + uint64_t{header->e_phnum} * sizeof(ElfW(Phdr));
  for (int i = 0; i < header->e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!ReadAt(file.get(), header->e_phoff + i * sizeof(segment), &segment)) {
      break;
    }
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t end = segment.p_offset + segment.p_filesz;
    // One that wraps around is no length.
    wanted = std::max(wanted, end < segment.p_offset ? UINT64_MAX : end);
  }
  if (wanted <= there) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is damaged: it has ", there, " bytes of at least ",
                   wanted, "; install it again"));
}

absl::Status CheckSharedLibrary(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  const auto header = LoadableHeader(file.get());
  if (!header.has_value() || header->e_type != ET_DYN) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is no shared library for this machine's processor"));
  }
  return CheckElfWhole(path);
}

std::string FindSharedLibrary(const std::string& name) {
  const std::vector<SearchFolder> folders = SearchFolders();
  const auto find_in = [&](bool is_default) -> std::string {
    for (const SearchFolder& folder : folders) {
      if (folder.is_default != is_default) continue;
      const std::string path = absl::StrCat(folder.path, "/", name);
      if (IsLoadable(path)) return path;
    }
    return "";
  };
  for (const std::string& path :
       {find_in(false), FindInCache(name), find_in(true)}) {
    if (!path.empty()) return path;
  }
  return "";
}

}  // namespace regatta
