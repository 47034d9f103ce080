// Texts of schedules, for the space that the first byte chooses: what parses
// prints as itself, is legal or refused by a named constraint, and what is
// legal has loops that pass the verifier. Foreign texts are carried over or
// not.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/ops/op.h"
#include "compiler/space/schedule_text.h"
#include "compiler/space/space.h"
#include "tests/fuzz/fuzz_text.h"

namespace regatta {
namespace {

std::vector<Space> MakeSpaces() {
  const char* const targets[] = {
      "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
      "vector_registers=32,products=ui8x4",
      "opencl,vector_bits=128,max_group=256,local_bytes=32768"};
  const char* const workloads[] = {
      "matmul(m=17,n=24,k=32)", "matmul(m=16,n=16,k=32,dtype=i8)",
      "conv2d(n=1,h=9,w=9,ci=8,co=8,kh=3,kw=3)", "softmax(rows=7,cols=33)",
      "B[j,i] = A[i,j] where i=13, j=21"};
  std::vector<Space> spaces;
  for (const char* target : targets) {
    for (const char* workload : workloads) {
      const auto parsed = ParseWorkload(workload);
      CHECK(parsed.ok()) << parsed.status();
      const auto of = ParseTarget(target);
      CHECK(of.ok()) << of.status();
      auto space =
          Space::Create({.workload = *parsed, .target = *of, .threads = 2});
      CHECK(space.ok()) << workload << ": " << space.status();
      spaces.push_back(*std::move(space));
    }
  }
  return spaces;
}

}  // namespace
}  // namespace regatta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  static const std::vector<Space> spaces = MakeSpaces();
  if (size == 0) return 0;
  const Space& space = spaces[static_cast<size_t>(data[0]) % spaces.size()];
  const std::string_view text = fuzz::TextOf(data + 1, size - 1);
  if (const auto parts = ParseScheduleText(text); parts.ok()) {
    CHECK(PrintScheduleText(*parts) == text) << text;
  }
  if (const auto carried = space.CarryOver(text); carried.has_value()) {
    CHECK(!space.Refusal(*carried).has_value()) << text;
  }
  const auto schedule = space.Parse(text);
  if (!schedule.ok()) return 0;
  const std::string printed = space.Print(*schedule);
  const auto again = space.Parse(printed);
  CHECK(again.ok() && *again == *schedule) << printed;
  if (space.Refusal(*schedule).has_value()) return 0;
  const absl::Status verified = loop::Verify(space.Emit(*schedule));
  CHECK(verified.ok()) << printed << ": " << verified;
  return 0;
}
