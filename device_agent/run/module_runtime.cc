#include "device_agent/run/module_runtime.h"

#include <utility>

namespace regatta {

MaybeFailure Failed(v1::Outcome outcome, std::string detail) {
  v1::RunFailure failure;
  failure.set_outcome(outcome);
  failure.set_detail(std::move(detail));
  return failure;
}

std::string NameOf(const ModuleBuffer& buffer) {
  switch (buffer.role) {
    case BufferRole::kInput:
      return "input " + buffer.name;
    case BufferRole::kOutput:
      return "output " + buffer.name;
    case BufferRole::kConstant:
      return "constant " + buffer.name;
    case BufferRole::kWorkspace:
      break;
  }
  return "workspace " + buffer.name;
}

}  // namespace regatta
