#include "device_agent/verify/reference_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/memory_file.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

int64_t HeaderBytes() { return sysconf(_SC_PAGESIZE); }

std::vector<const ModuleBuffer*> Tensors(const Module& module) {
  std::vector<const ModuleBuffer*> all =
      module.BuffersWithRole(BufferRole::kInput);
  for (const ModuleBuffer* output :
       module.BuffersWithRole(BufferRole::kOutput)) {
    all.push_back(output);
  }
  return all;
}

// What stands at the start of a file for this module's tensors.
std::string Header(const Module& module) {
  std::string header = "regatta reference 1\n";
  for (const ModuleBuffer* tensor : Tensors(module)) {
    absl::StrAppend(&header, DTypeBytes(tensor->dtype), " ", tensor->bytes,
                    "\n");
  }
  header.resize(std::min<size_t>(header.size(), HeaderBytes() - 1));
  header.push_back('\0');
  return header;
}

int64_t TotalBytes(const Module& module) {
  int64_t total = HeaderBytes();
  for (const ModuleBuffer* tensor : Tensors(module)) {
    total += GuardedMemory::SectionBytes(tensor->bytes);
  }
  return total;
}

absl::StatusOr<ReferenceTensors> MapTensors(const Module& module, int fd,
                                            bool writable) {
  ReferenceTensors tensors;
  int64_t offset = HeaderBytes();
  for (const ModuleBuffer* tensor : Tensors(module)) {
    const bool input = tensor->role == BufferRole::kInput;
    ASSIGN_OR_RETURN(
        GuardedMemory memory,
        GuardedMemory::MapSection(
            absl::StrCat(input ? "input " : "expected ", tensor->name), fd,
            offset, tensor->bytes, writable));
    (input ? tensors.inputs : tensors.outputs).push_back(std::move(memory));
    offset += GuardedMemory::SectionBytes(tensor->bytes);
  }
  return tensors;
}

}  // namespace

absl::StatusOr<ReferenceTensors> CreateReferenceFile(const Module& module,
                                                     int fd) {
  if (ftruncate(fd, TotalBytes(module)) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a reference file of ", TotalBytes(module),
                     " bytes: ", strerror(errno)));
  }
  return MapTensors(module, fd, /*writable=*/true);
}

absl::Status FinishReferenceFile(const Module& module, int fd) {
  const std::string header = Header(module);
  if (pwrite(fd, header.data(), header.size(), 0) !=
      static_cast<ssize_t>(header.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("writing a reference file: ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReferenceTensors> OpenReferenceFile(const Module& module,
                                                   int fd) {
  ASSIGN_OR_RETURN(const int64_t bytes, FileBytes(fd));
  const std::string wanted = Header(module);
  std::string header(wanted.size(), '\0');
  if (bytes != TotalBytes(module) ||
      pread(fd, header.data(), header.size(), 0) !=
          static_cast<ssize_t>(header.size()) ||
      header != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the reference file of ", bytes,
        " bytes was not made for the tensors of ", module.workload));
  }
  return MapTensors(module, fd, /*writable=*/false);
}

}  // namespace regatta
