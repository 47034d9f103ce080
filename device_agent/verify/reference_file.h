// The inputs of a workload and the outputs that are right for them, in one file
// that run workers map. After a header of one page come the tensors, inputs
// first, each in whole pages of its own (GuardedMemory::SectionBytes), so that
// it can be mapped between guards. What the tensors are is known from the
// module.
//
// Not thread-safe.
#ifndef REGATTA_DEVICE_AGENT_VERIFY_REFERENCE_FILE_H_
#define REGATTA_DEVICE_AGENT_VERIFY_REFERENCE_FILE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/module/module.h"
#include "device_agent/verify/guarded_memory.h"

namespace regatta {

struct ReferenceTensors {
  std::vector<GuardedMemory> inputs, outputs;  // in the module's order
};

// Gives the empty file its size and maps it writable. The header is written by
// FinishReferenceFile only, so that a half-made file is none.
absl::StatusOr<ReferenceTensors> CreateReferenceFile(const Module& module,
                                                     int fd);
absl::Status FinishReferenceFile(const Module& module, int fd);

// Maps a finished file read-only. InvalidArgument for a file that is none or
// that was made for tensors of other sizes.
absl::StatusOr<ReferenceTensors> OpenReferenceFile(const Module& module,
                                                   int fd);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_VERIFY_REFERENCE_FILE_H_
