#include "compiler/module/c_interface.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/module/c_identifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sample_module.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

// Whether a program that includes the header twice and then has `body` passes
// the compiler's checks.
void ExpectCompiles(const std::string& header, const std::string& body) {
  const std::string dir = ::testing::TempDir();
  const std::string name = absl::StrCat(
      "regatta_header_",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::ofstream(dir + "/" + name + ".h") << header;
  for (const bool cxx : {false, true}) {
    const std::string source = dir + "/" + name + (cxx ? ".cc" : ".c");
    std::ofstream(source) << "#include \"" << name << ".h\"\n#include \""
                          << name << ".h\"\n"
                          << body;
    const std::string command = absl::StrCat(
        cxx ? REGATTA_CXX_COMPILER " -std=c++17"
            : REGATTA_C_COMPILER " -std=c99",
        " -fsyntax-only -Wall -Wextra -Wpedantic -Werror ", source);
    EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << header;
  }
}

TEST(FunctionNameTest, ComesFromTheFileName) {
  const std::pair<std::string, std::string> cases[] = {
      {"k.h", "k"},
      {"out/my-k.h", "my_k"},
      {"/a.b/c.d.hpp", "c_d"},
      {"noextension", "noextension"},
      {"./x/mat mul.h", "mat_mul"}};
  for (const auto& [path, name] : cases) {
    const auto result = FunctionName(path);
    ASSERT_STATUS_OK(result);
    EXPECT_EQ(*result, name);
  }
}

TEST(FunctionNameTest, NamesThatCCannotHaveAreRefused) {
  for (const std::string path : {"",
                                 "/",
                                 ".h",
                                 "---.h",
                                 "out/",
                                 "3k.h",
                                 "int.h",
                                 "class.h",
                                 "main.h",
                                 "expf.h",
                                 "malloc.h",
                                 "printf.h",
                                 "read.h",
                                 "strlen.h",
                                 "fopen.h",
                                 "gamma.h",
                                 "pthread_create.h",
                                 "__x.h",
                                 "_X.h",
                                 "_init.h",
                                 "_fini.h",
                                 "_start.h",
                                 "_x.h",
                                 "REGATTA_KERNEL_K_H.h",
                                 "REGATTA_KERNEL_.h"}) {
    const auto result = FunctionName(path);
    ASSERT_FALSE(result.ok()) << path;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusText(result), HasSubstr("named after it"));
  }
  EXPECT_FALSE(FunctionName(std::string(500, 'a') + ".h").ok());
}

TEST(CHeaderTest, DeclaresBothFunctionsForCAndCxx) {
  const std::string header =
      CHeader(SampleModule(), "exact", "measured 12 times on 2 boards");
  EXPECT_THAT(header,
              HasSubstr("int my_kernel(const uint16_t *A, const int8_t *B, "
                        "float *C);"));
  EXPECT_THAT(header,
              HasSubstr("int my_kernel_ws(const uint16_t *A, const int8_t *B, "
                        "float *C, void *workspace);"));
  EXPECT_THAT(header,
              HasSubstr("extern const size_t my_kernel_workspace_bytes;"));
  ExpectCompiles(header,
                 "int f(const uint16_t *a, const int8_t *b, float *c, void *w) "
                 "{\n  size_t bytes = my_kernel_workspace_bytes;\n"
                 "  return my_kernel(a, b, c) + my_kernel_ws(a, b, c, w) + "
                 "(bytes > 9);\n}\n");
}

TEST(CHeaderTest, SaysWhatACallerMustKnow) {
  const std::string header = CHeader(SampleModule(), "exact", "a reason");
  for (const std::string part :
       {"matmul(m=3,n=5,k=4)", "contraction{mr=14,nv=2}", "exact: a reason",
        "A: input, f16[3,4] (IEEE binary16 bits), 24 bytes, aligned to 2",
        "B: input, i8[4,5], 20 bytes, aligned to 1",
        "C: output, f32[3,5], 60 bytes, aligned to 4", "256 bytes",
        "aligned to 64", "up to 1 more", "ABI version 1", "Returns 0",
        "packs constant operands"}) {
    EXPECT_THAT(header, HasSubstr(part));
  }
  Module single = SampleModule();
  single.threads = 1;
  EXPECT_THAT(CHeader(single, "default", ""),
              HasSubstr("on the calling thread only"));
}

TEST(CHeaderTest, HostileTextStaysInsideTheComment) {
  Module module = SampleModule();
  module.schedule = "*/ int injected; /* \n*//* \xff";
  module.buffers[0].name = "int";
  module.buffers[1].name = "int_";
  module.buffers[2].name = "workspace";
  const std::string header =
      CHeader(module, "exact", "*/ #error reason\n#error line");
  ExpectCompiles(header,
                 "int injected(void);\nint injected(void) { return 0; }\n");
}

TEST(CIdentifierTest, EveryTextBecomesAnIdentifier) {
  for (const std::string text :
       {"", "a", "9", "a b", "int", "__a", "_A", "\xff\xff", "size_t", "I",
        "INT8_MAX", "SIZE_MAX", "UINT64_C"}) {
    EXPECT_TRUE(IsCIdentifier(ToCIdentifier(text))) << text;
  }
  EXPECT_EQ(ToCIdentifier("A"), "A");
  EXPECT_EQ(ToCIdentifier("I"), "I_");  // a macro of <complex.h>
  EXPECT_EQ(ToCIdentifier("INT8_MAX"), "INT8_MAX_");
  EXPECT_EQ(ToCIdentifier("INTERNAL"), "INTERNAL");
  EXPECT_FALSE(IsCIdentifier(""));
  EXPECT_FALSE(IsCIdentifier("a-b"));
}

}  // namespace
}  // namespace regatta
