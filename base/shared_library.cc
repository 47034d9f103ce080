#include "base/shared_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/elf_file.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// dlerror says in words alone whether a file is absent, and the same words of a
// library that this one needs.
bool IsAbsent(const std::string& name, const std::string& why) {
  if (absl::StrContains(name, "/")) {
    return access(name.c_str(), F_OK) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);
  }
  return absl::StartsWith(
      why, absl::StrCat(name,
                        ": cannot open shared object file: No such file "
                        "or directory"));
}

}  // namespace

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const std::string& name) {
  const bool is_path = absl::StrContains(name, "/");
  RETURN_IF_ERROR(CheckElfWhole(is_path ? name : FindSharedLibrary(name)));
  if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    return SharedLibrary(name, handle);
  }
  const char* said = dlerror();
  const std::string why = said == nullptr ? "" : said;
  if (IsAbsent(name, why)) {
    return absl::NotFoundError(absl::StrCat("there is no ", name));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(name, " cannot be loaded: ", why));
}

std::string SharedLibrary::Folder() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return "";
  const std::string path = map->l_name;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

void* SharedLibrary::Symbol(const char* name) const {
  return dlsym(handle_, name);
}

void SharedLibrary::Close() {
  dlclose(handle_);
  handle_ = nullptr;
}

absl::Status SharedLibrary::Complete() const {
  if (missing_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(name_, " lacks", missing_));
}

}  // namespace regatta
