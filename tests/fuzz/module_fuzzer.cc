// Bytes that boards are given to load: what is read prints as itself.
#include <cstdint>

#include "base/check.h"
#include "compiler/module/cuda_binary.h"
#include "compiler/module/module.h"
#include "tests/fuzz/fuzz_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const std::string_view bytes = fuzz::TextOf(data, size);
  if (const auto module = DeserializeModule(bytes); module.ok()) {
    const std::string printed = SerializeModule(*module);
    const auto again = DeserializeModule(printed);
    CHECK(again.ok()) << again.status();
    CHECK(SerializeModule(*again) == printed);
    module->BinaryHash();
  }
  if (const auto binary = ParseCudaBinary(bytes); binary.ok()) {
    const auto again = ParseCudaBinary(SerializeCudaBinary(*binary));
    CHECK(again.ok() && *again == *binary);
  }
  return 0;
}
