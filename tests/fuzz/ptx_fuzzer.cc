// PTX text, and cubins: read or refused.
#include <cstdint>

#include "base/check.h"
#include "compiler/ptxsim/cubin.h"
#include "compiler/ptxsim/ptx_module.h"
#include "tests/fuzz/fuzz_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const std::string_view text = fuzz::TextOf(data, size);
  (void)ptxsim::ReadCubin(text);
  const auto module = ptxsim::PtxModule::Parse(text);
  if (!module.ok()) return 0;
  for (const auto& entry : module->entries()) {
    CHECK(module->FindEntry(entry.name) != nullptr) << entry.name;
  }
  return 0;
}
