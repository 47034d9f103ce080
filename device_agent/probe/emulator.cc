#include "device_agent/probe/emulator.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace regatta {
namespace {

constexpr char kExecuted[] = "/proc/thread-self/exe";
constexpr size_t kMostHeaders = 64;

// The bytes of the program headers of an ELF file of this process's width; ""
// when it is none.
std::string ProgramHeaders(int file) {
  ElfW(Ehdr) header;
  if (pread(file, &header, sizeof(header), 0) != sizeof(header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0 ||
      header.e_phnum > kMostHeaders) {
    return "";
  }
  std::string bytes(header.e_phnum * sizeof(ElfW(Phdr)), '\0');
  const ssize_t got = pread(file, bytes.data(), bytes.size(),
                            static_cast<off_t>(header.e_phoff));
  return got == static_cast<ssize_t>(bytes.size()) ? bytes : "";
}

// For dl_iterate_phdr: 1 when the object has just the headers in `wanted`.
int SameHeaders(dl_phdr_info* object, size_t, void* wanted) {
  const auto& headers = *static_cast<const std::string*>(wanted);
  return object->dlpi_phnum * sizeof(ElfW(Phdr)) == headers.size() &&
                 std::memcmp(object->dlpi_phdr, headers.data(),
                             headers.size()) == 0
             ? 1
             : 0;
}

}  // namespace

absl::StatusOr<std::string> FindEmulator() {
  const UniqueFd file(open(kExecuted, O_RDONLY | O_CLOEXEC));
  char path[PATH_MAX];
  const ssize_t length = readlink(kExecuted, path, sizeof(path));
  if (!file.valid() || length < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot read ", kExecuted, " (", std::strerror(errno),
        "), so it is unknown whether this machine's processor or an emulator "
        "runs this program"));
  }
  std::string headers = ProgramHeaders(file.get());
  const bool loaded =
      !headers.empty() && dl_iterate_phdr(SameHeaders, &headers) != 0;
  return loaded ? "" : std::string(path, static_cast<size_t>(length));
}

absl::Status CheckEmulation() {
  if (std::getenv(kEmulatedVariable) != nullptr) return absl::OkStatus();
  const absl::StatusOr<std::string> emulator = FindEmulator();
  if (!emulator.ok() || emulator->empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      *emulator,
      " is an emulator and runs this worker, but not the agent, which would "
      "take the worker's times for this board's: take it out of --exec-prefix, "
      "or start the agent behind it as well"));
}

}  // namespace regatta
