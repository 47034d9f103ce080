#include "device_agent/run/module_runtime.h"

#include <utility>

namespace regatta {

MaybeFailure Failed(v1::Outcome outcome, std::string detail) {
  v1::RunFailure failure;
  failure.set_outcome(outcome);
  failure.set_detail(std::move(detail));
  return failure;
}

}  // namespace regatta
