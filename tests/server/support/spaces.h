// Real spaces for the server's tests, on a target that no machine need have.
#ifndef REGATTA_TESTS_SERVER_SUPPORT_SPACES_H_
#define REGATTA_TESTS_SERVER_SUPPORT_SPACES_H_

#include <cstdlib>
#include <memory>
#include <string>

#include "base/check.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"

namespace regatta::testing {

inline constexpr char kTargetText[] =
    "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
    "vector_registers=32,products=ui8x4";
inline constexpr char kOtherTargetText[] =
    "cpu,triple=aarch64-linux-gnu,mcpu=neoverse-n1,vector_bits=128,"
    "vector_registers=32,products=i8x4";

inline Workload WorkloadOf(const std::string& text) {
  auto workload = ParseWorkload(text);
  CHECK(workload.ok()) << workload.status();
  return *std::move(workload);
}

inline std::shared_ptr<const Space> SpaceOf(
    const std::string& text, const std::string& target_text = kTargetText,
    int threads = 1) {
  auto target = ParseTarget(target_text);
  CHECK(target.ok()) << target.status();
  SpaceContext context;
  context.workload = WorkloadOf(text);
  context.target = *target;
  context.threads = threads;
  auto space = Space::Create(std::move(context));
  CHECK(space.ok()) << space.status();
  return std::make_shared<const Space>(*std::move(space));
}

// Seeds of a randomised test: `count` times REGATTA_TEST_SCALE (default 1).
inline int ScaledSeeds(int count) {
  const char* scale = std::getenv("REGATTA_TEST_SCALE");
  const double factor = scale == nullptr ? 1 : std::atof(scale);
  return factor <= 0 ? count : static_cast<int>(count * factor) + 1;
}

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SERVER_SUPPORT_SPACES_H_
