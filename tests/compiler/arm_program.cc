#include "tests/compiler/arm_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/module/tensor_bytes.h"

namespace regatta {
namespace {

constexpr char kCompiler[] = "aarch64-linux-gnu-gcc";
constexpr char kEmulator[] = "qemu-aarch64";

// Tensors end where a page begins that may not be touched. The list of modules
// stands in front of it.
constexpr char kDriver[] = R"(
static void *Fenced(size_t bytes, size_t align) {
  size_t page = 65536, payload = (bytes + page - 1) / page * page + page;
  char *block = mmap(NULL, payload + page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED || mprotect(block + payload, page, PROT_NONE) != 0)
    exit(3);
  return block + (payload - bytes) / align * align;
}
int main(void) {
  FILE *in = fopen("inputs", "rb"), *out = fopen("outputs", "wb");
  if (in == NULL || out == NULL) return 2;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    void *tensors[64];
    size_t count = 0;
    for (const struct Tensor *t = cases[i].tensors; t->bytes != 0; ++t) {
      tensors[count] = Fenced(t->bytes, t->align);
      if (t->is_output) memset(tensors[count], 0xff, t->bytes);
      else if (fread(tensors[count], 1, t->bytes, in) != t->bytes) return 4;
      ++count;
    }
    void *workspace = Fenced(*cases[i].workspace_bytes + 64, 64);
    memset(workspace, 0xff, *cases[i].workspace_bytes);
    if (cases[i].call(tensors, workspace) != 0) return 5;
    count = 0;
    for (const struct Tensor *t = cases[i].tensors; t->bytes != 0; ++t) {
      if (t->is_output && fwrite(tensors[count], 1, t->bytes, out) != t->bytes)
        return 6;
      ++count;
    }
  }
  return fclose(out) != 0 ? 7 : 0;
}
)";

bool InPath(const std::string& program) {
  return std::system(
             absl::StrCat("command -v ", program, " >/dev/null").c_str()) == 0;
}

std::vector<int> TensorsOf(const Workload& workload) {
  std::vector<int> ids = workload.TensorsWithRole(TensorRole::kInput);
  const std::vector<int> outputs =
      workload.TensorsWithRole(TensorRole::kOutput);
  ids.insert(ids.end(), outputs.begin(), outputs.end());
  return ids;
}

size_t Bytes(const TensorDecl& tensor) {
  return tensor.Elements() * DTypeBytes(tensor.dtype);
}

void Write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

const std::vector<ArmProcessor>& ArmProcessors() {
  static const auto& processors = *new std::vector<ArmProcessor>{
      {"cortex-a53", "cortex-a53"},   {"cortex-a55", "cortex-a76"},
      {"cortex-a72", "cortex-a72"},   {"cortex-a76", "cortex-a76"},
      {"neoverse-n1", "neoverse-n1"}, {"neoverse-n2", "max"},
      {"neoverse-v1", "max"},         {"neoverse-v2", "max"}};
  return processors;
}

Target ArmTarget(const std::string& mcpu) {
  Target target;
  target.triple = "aarch64-linux-gnu";
  target.mcpu = mcpu;
  const auto complete = FindCodeGenerator("cpu")->Complete(target);
  CHECK(complete.ok()) << complete.status();
  return *complete;
}

std::string ArmProgramsMissing() {
  for (const char* program : {kCompiler, kEmulator}) {
    if (!InPath(program)) return absl::StrCat("no ", program, " here");
  }
  return "";
}

ArmProgram::ArmProgram() {
  static std::atomic<int> count = 0;
  dir_ = std::filesystem::path(testing::TempDir()) /
         absl::StrCat("regatta-arm-", getpid(), "-", ++count);
  std::filesystem::create_directories(dir_);
}

ArmProgram::~ArmProgram() { std::filesystem::remove_all(dir_); }

void ArmProgram::Add(const Module& module, const Workload& workload,
                     std::vector<TensorValues> inputs) {
  Write(dir_ / absl::StrCat(module.name, ".o"), module.relocatable);
  cases_.push_back({module.name, workload, std::move(inputs)});
}

std::string ArmProgram::Source() const {
  std::string source =
      "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
      "#include <sys/mman.h>\n"
      "struct Tensor { size_t bytes, align; int is_output; };\n"
      "struct Case { int (*call)(void *const *, void *);\n"
      "  const size_t *workspace_bytes; const struct Tensor *tensors; };\n";
  std::string list;
  for (const Case& test : cases_) {
    absl::StrAppend(&source, "int ", test.name,
                    "_call(void *const *, void *);\nextern const size_t ",
                    test.name, "_workspace_bytes;\n",
                    "static const struct Tensor ", test.name, "_t[] = {");
    for (const int id : TensorsOf(test.workload)) {
      const TensorDecl& tensor = test.workload.tensors[id];
      const bool output = tensor.role == TensorRole::kOutput;
      absl::StrAppend(&source, "{", Bytes(tensor), ", ",
                      DTypeBytes(tensor.dtype), ", ", output ? 1 : 0, "}, ");
    }
    absl::StrAppend(&source, "{0, 0, 0}};\n");
    absl::StrAppend(&list, "  {", test.name, "_call, &", test.name,
                    "_workspace_bytes, ", test.name, "_t},\n");
  }
  return absl::StrCat(source, "static const struct Case cases[] = {\n", list,
                      "};\n", kDriver);
}

int ArmProgram::Run(const std::string& qemu_cpu) {
  std::string inputs, objects;
  size_t output = 0;
  for (Case& test : cases_) {
    const std::vector<int> ids =
        test.workload.TensorsWithRole(TensorRole::kInput);
    for (size_t i = 0; i < ids.size(); ++i) {
      absl::StrAppend(
          &inputs,
          ValuesToBytes(test.inputs[i], test.workload.tensors[ids[i]].dtype));
    }
    test.first_output = output;
    for (const int id : test.workload.TensorsWithRole(TensorRole::kOutput)) {
      output += Bytes(test.workload.tensors[id]);
    }
    absl::StrAppend(&objects, test.name, ".o\n");
  }
  Write(dir_ / "inputs", inputs);
  Write(dir_ / "objects", objects);
  Write(dir_ / "main.c", Source());
  const std::string build =
      absl::StrCat("cd '", dir_.string(), "' && ", kCompiler,
                   " -O1 -static main.c @objects -lm -lpthread -o main");
  CHECK(std::system(build.c_str()) == 0) << build;
  const int status =
      std::system(absl::StrCat("cd '", dir_.string(), "' && exec ", kEmulator,
                               " -cpu ", qemu_cpu, " ./main 2>qemu.log")
                      .c_str());
  std::ifstream in(dir_ / "outputs", std::ios::binary);
  output_.assign(std::istreambuf_iterator<char>(in), {});
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<TensorValues> ArmProgram::Outputs(size_t i) const {
  const Case& test = cases_[i];
  std::vector<TensorValues> outputs;
  size_t at = test.first_output;
  for (const int id : test.workload.TensorsWithRole(TensorRole::kOutput)) {
    const TensorDecl& tensor = test.workload.tensors[id];
    CHECK(at + Bytes(tensor) <= output_.size());
    outputs.push_back(
        ReadValues(output_.data() + at, tensor.Elements(), tensor.dtype));
    at += Bytes(tensor);
  }
  return outputs;
}

}  // namespace regatta
