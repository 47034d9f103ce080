#include "compiler/lower/intrinsics.h"

namespace regatta::loop {

const Intrinsic* FindIntrinsic(std::string_view name) {
  using Use = IntrinsicOperandRule::Use;
  static const std::vector<Intrinsic>& all = *new std::vector<Intrinsic>{
      {kCopyAsync,
       {{.use = Use::kWrites, .local = true, .bytes = 16},
        {.use = Use::kReads, .local = false, .bytes = 16}}},
      {kCommitAsync, {}},
      {kWaitAsync, {{.use = Use::kNumber}}},
  };
  for (const Intrinsic& intrinsic : all) {
    if (intrinsic.name == name) return &intrinsic;
  }
  return nullptr;
}

}  // namespace regatta::loop
