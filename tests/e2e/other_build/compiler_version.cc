// Takes the place of the digest of this tree's sources, so that a build worker
// is one of another build and says so.
#include "compiler/codegen/compiler_version.h"

namespace regatta {

std::string CompilerVersionOf(std::string_view tool) {
  return "0123456789abcdef/" + std::string(tool);
}

}  // namespace regatta
