#include "compiler/ops/norms.h"

namespace regatta {

OpParameter EpsParameter() {
  return {.name = "eps",
          .help = "added to the mean square before its root is taken",
          .default_value = "1e-05",
          .kind = OpParameter::Kind::kReal,
          .min = 0,
          .max = 1000};
}

}  // namespace regatta
