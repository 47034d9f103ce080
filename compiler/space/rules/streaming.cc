#include "compiler/space/rules/streaming.h"

#include <cstdint>
#include <string>

namespace regatta {
namespace {

// Less than this stays in a core's own cache. A constant, not a hint: which
// knobs there are must not depend on the machine.
constexpr int64_t kMinStreamedBytes = 1 << 20;

int64_t Bytes(const SpaceContext& context, int tensor) {
  const TensorDecl& t = context.workload.tensors[tensor];
  return t.Elements() * DTypeBytes(t.dtype);
}

}  // namespace

bool MayStream(const SpaceContext& context, int tensor) {
  return Bytes(context, tensor) >= kMinStreamedBytes;
}

bool StreamsByDefault(const SpaceContext& context, int tensor) {
  const TensorDecl& t = context.workload.tensors[tensor];
  const int64_t row = t.shape.empty() ? 1 : t.shape.back();
  return MayStream(context, tensor) &&
         Bytes(context, tensor) >= context.hints.l3_bytes &&
         row % context.target.Lanes(DTypeBytes(t.dtype)) == 0;
}

Knob StoresKnob() {
  return WordKnob(std::string(kStoresKnob), "where large results go",
                  {"cached", "streamed"});
}

}  // namespace regatta
