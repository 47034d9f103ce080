// A shared library that is opened at run time, and its functions by name.
//
// Thread-safe, but for Resolve on one object.
#ifndef REGATTA_BASE_SHARED_LIBRARY_H_
#define REGATTA_BASE_SHARED_LIBRARY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

class SharedLibrary {
 public:
  // `name` as dlopen takes it: a path, or what the system looks for. NotFound
  // only when there is no such file; FailedPrecondition with the loader's
  // reason when it is there and cannot be loaded, or is cut off, which would
  // kill this process (base/elf_file.h). Stays open, since drivers leave
  // threads behind, until Close.
  static absl::StatusOr<SharedLibrary> Open(const std::string& name);

  // Where the file is that was opened: "/usr/lib/"; "" when it is not known.
  std::string Folder() const;

  // Null when the library has none of that name.
  void* Symbol(const char* name) const;

  // Sets `function`, or notes that there is none.
  template <typename Pointer>
  void Resolve(const char* name, Pointer& function) {
    function = reinterpret_cast<Pointer>(Symbol(name));
    if (function == nullptr) missing_ += std::string(" ") + name;
  }
  // FailedPrecondition with the names that Resolve did not find.
  absl::Status Complete() const;
  // For one that will not be used: as long as it is open, another file of the
  // same name is taken for it. Nothing of it may be called any more.
  void Close();

 private:
  SharedLibrary(std::string name, void* handle)
      : name_(std::move(name)), handle_(handle) {}

  std::string name_;
  void* handle_;
  std::string missing_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_SHARED_LIBRARY_H_
