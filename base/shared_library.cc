#include "base/shared_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

// dlerror says in words alone whether a file is absent, and the same words of a
// library that this one needs.
bool IsAbsent(const std::string& name, const std::string& why) {
  if (absl::StrContains(name, "/")) return access(name.c_str(), F_OK) != 0;
  return absl::StartsWith(
      why, absl::StrCat(name,
                        ": cannot open shared object file: No such file "
                        "or directory"));
}

}  // namespace

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const std::string& name) {
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
