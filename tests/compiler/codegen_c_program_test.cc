// Every operator and type from C: libraries and objects with their headers, one
// program that a C compiler makes of them, and the numbers that it computes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/compile.h"
#include "compiler/module/c_interface.h"
#include "compiler/module/tensor_bytes.h"
#include "compiler/ops/op.h"
#include "tests/compiler/codegen_support.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

// Every sample of every operator that is quick to interpret.
std::vector<std::string> Calls() {
  std::vector<std::string> calls;
  for (const Op& op : Ops()) {
    for (const std::string& sample : op.samples) {
      const auto workload = ParseWorkload(sample);
      EXPECT_TRUE(workload.ok()) << StatusText(workload);
      if (workload.ok() && workload->Flops() <= 1e6) calls.push_back(sample);
    }
  }
  return calls;
}

int64_t Bytes(const TensorDecl& tensor) {
  return tensor.Elements() * DTypeBytes(tensor.dtype);
}

class CProgramTest : public testing::Test {
 protected:
  CProgramTest()
      : dir_(std::filesystem::path(testing::TempDir()) /
             absl::StrCat("regatta-c-", getpid())) {
    std::filesystem::create_directories(dir_);
  }
  ~CProgramTest() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) {
    std::ifstream in(dir_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // Writes the files of one call, appends it to the program.
  void Add(const std::string& text) {
    const std::string name = absl::StrCat("kernel_", cases_.size());
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    const auto space = CreateSpace(*workload, HostForTests(), 1);
    ASSERT_STATUS_OK(space);
    const auto module = Compile(*space, space->Print(space->Default()), name);
    ASSERT_STATUS_OK(module) << text;
    const bool shared = cases_.size() % 2 == 0;
    const std::string file = absl::StrCat(name, shared ? ".so" : ".o");
    Write(file, shared ? module->loadable : module->relocatable);
    Write(name + ".h", CHeader(*module, "default", "a test"));
    absl::StrAppend(&includes_, "#include \"", name, ".h\"\n");
    absl::StrAppend(&objects_, " ./", file);
    Case test{.workload = *workload, .inputs = SeededInputs(*workload, 5)};
    std::vector<std::string> arguments;
    std::string before, after;
    const std::vector<int> inputs =
        workload->TensorsWithRole(TensorRole::kInput);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorDecl& tensor = workload->tensors[inputs[i]];
      std::string bytes(Bytes(tensor), '\0');
      WriteValues(test.inputs[i], tensor.dtype, bytes.data());
      Write(absl::StrCat(name, ".", i), bytes);
      arguments.push_back(absl::StrCat("a", i));
      absl::StrAppend(&before, "  void *a", i, " = load(\"", name, ".", i,
                      "\", ", bytes.size(), ");\n");
    }
    arguments.push_back("y");
    const int64_t out = Bytes(workload->tensors.back());
    absl::StrAppend(&before, "  void *y = room(", out, ");\n");
    absl::StrAppend(&after, "  store(\"", name, ".out\", y, ", out, ");\n");
    // Every third call brings its workspace.
    std::string function = name;
    if (cases_.size() % 3 == 0) {
      absl::StrAppend(&function, "_ws");
      absl::StrAppend(&before, "  void *w = room(", name,
                      "_workspace_bytes);\n");
      arguments.push_back("w");
    }
    absl::StrAppend(&body_, "{\n", before, "  if (", function, "(",
                    absl::StrJoin(arguments, ", "), ") != 0) return 1;\n",
                    after, "}\n");
    cases_.push_back(std::move(test));
  }

  std::string Program() const {
    return absl::StrCat(
        "#include <stdio.h>\n#include <stdlib.h>\n", includes_,
        "static void *room(size_t bytes) {\n"
        "  void *p = aligned_alloc(64, (bytes / 64 + 1) * 64);\n"
        "  if (p == NULL) exit(2);\n  return p;\n}\n"
        "static void *load(const char *path, size_t bytes) {\n"
        "  void *p = room(bytes);\n  FILE *f = fopen(path, \"rb\");\n"
        "  if (f == NULL || fread(p, 1, bytes, f) != bytes) exit(3);\n"
        "  fclose(f);\n  return p;\n}\n"
        "static void store(const char *path, void *p, size_t bytes) {\n"
        "  FILE *f = fopen(path, \"wb\");\n"
        "  if (f == NULL || fwrite(p, 1, bytes, f) != bytes) exit(4);\n"
        "  fclose(f);\n}\nint main(void) {\n",
        body_, "return 0;\n}\n");
  }

  struct Case {
    Workload workload;
    std::vector<TensorValues> inputs;
  };
  std::filesystem::path dir_;
  std::string includes_, body_, objects_;
  std::vector<Case> cases_;
};

TEST_F(CProgramTest, ComputesEveryOperatorAndType) {
  for (const std::string& call : Calls()) {
    Add(call);
    if (HasFatalFailure()) return;
  }
  Write("main.c", Program());
  const std::string command =
      absl::StrCat("cd '", dir_.string(),
                   "' && " REGATTA_C_COMPILER
                   " -std=c11 -Wall -Wextra -Wpedantic -Werror main.c",
                   objects_, " -lm -o main && ./main");
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (size_t i = 0; i < cases_.size(); ++i) {
    const Case& test = cases_[i];
    const TensorDecl& output = test.workload.tensors.back();
    const std::string bytes = Read(absl::StrCat("kernel_", i, ".out"));
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), Bytes(output));
    ExpectNear(test.workload,
               {ReadValues(bytes.data(), output.Elements(), output.dtype)},
               Interpret(test.workload, test.inputs), "from C");
  }
  std::printf("%zu calls right from C\n", cases_.size());
}

}  // namespace
}  // namespace regatta
