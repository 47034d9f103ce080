#include "tests/compiler/ptxsim/snippet.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::ptxsim {

std::string SnippetKernel(const std::string& body,
                          const std::string& declarations,
                          const std::string& before) {
  return absl::StrCat(R"(.version 8.0
.target sm_80
.address_size 64
)",
                      before, R"(
.visible .entry snippet(.param .u64 pa, .param .u64 pb, .param .u64 pc,
                        .param .u64 po)
{
.reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .f32 %f<16>;
.reg .b64 %d<32>; .reg .b64 %x<8>;
)",
                      declarations, R"(
mov.u32 %r0, %tid.x;
mul.wide.u32 %x0, %r0, 8;
ld.param.u64 %x1, [pa]; add.s64 %x1, %x1, %x0; ld.global.u64 %d1, [%x1];
ld.param.u64 %x2, [pb]; add.s64 %x2, %x2, %x0; ld.global.u64 %d2, [%x2];
ld.param.u64 %x3, [pc]; add.s64 %x3, %x3, %x0; ld.global.u64 %d3, [%x3];
cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3;
mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;
cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u16.u32 %h3, %r3;
mov.u64 %d0, 0;
// the snippet
)",
                      body, R"(
ld.param.u64 %x4, [po]; add.s64 %x4, %x4, %x0; st.global.u64 [%x4], %d0;
ret;
}
)");
}

namespace {

absl::StatusOr<LaunchReport> Execute(const std::string& kernel,
                                     const SnippetInput& input,
                                     std::vector<uint64_t>* out) {
  ASSIGN_OR_RETURN(const PtxModule module, PtxModule::Parse(kernel));
  DeviceMemory memory;
  std::vector<Argument> arguments;
  for (std::vector<uint64_t> values : {input.a, input.b, input.c}) {
    values.resize(input.threads);
    ASSIGN_OR_RETURN(const uint64_t address,
                     memory.Allocate(8 * input.threads));
    RETURN_IF_ERROR(memory.WriteArray<uint64_t>(address, values));
    arguments.emplace_back(address);
  }
  ASSIGN_OR_RETURN(const uint64_t result, memory.Allocate(8 * input.threads));
  arguments.emplace_back(result);
  ASSIGN_OR_RETURN(
      LaunchReport report,
      RunKernel(module,
                {.entry = "snippet",
                 .group = {input.threads, 1, 1},
                 .dynamic_shared_bytes = input.dynamic_shared_bytes,
                 .arguments = arguments},
                memory, {.instruction_limit = 10'000'000}));
  ASSIGN_OR_RETURN(*out, memory.ReadArray<uint64_t>(result, input.threads));
  return report;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> RunSnippet(const std::string& kernel,
                                                 const SnippetInput& input,
                                                 LaunchReport* report) {
  std::vector<uint64_t> out;
  ASSIGN_OR_RETURN(LaunchReport result, Execute(kernel, input, &out));
  if (report != nullptr) *report = result;
  if (result.fault.has_value()) {
    return absl::FailedPreconditionError(result.fault->ToString());
  }
  return out;
}

std::vector<uint64_t> Run64(const std::string& body,
                            const SnippetInput& input) {
  const auto out = RunSnippet(
      SnippetKernel(absl::StrCat(body, "\nmov.b64 %d0, %d9;")), input);
  EXPECT_TRUE(out.ok()) << out.status() << "\n" << body;
  return out.ok() ? *out : std::vector<uint64_t>(input.threads);
}

std::vector<uint32_t> Run32(const std::string& body,
                            const SnippetInput& input) {
  const auto out = RunSnippet(
      SnippetKernel(absl::StrCat(body, "\ncvt.u64.u32 %d0, %r9;")), input);
  EXPECT_TRUE(out.ok()) << out.status() << "\n" << body;
  if (!out.ok()) return std::vector<uint32_t>(input.threads);
  return std::vector<uint32_t>(out->begin(), out->end());
}

Fault FaultOf(const std::string& kernel, const SnippetInput& input) {
  std::vector<uint64_t> out;
  const auto report = Execute(kernel, input, &out);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok() || !report->fault.has_value()) {
    return {.kind = FaultKind::kTrap, .detail = "no fault"};
  }
  return *report->fault;
}

}  // namespace regatta::ptxsim
