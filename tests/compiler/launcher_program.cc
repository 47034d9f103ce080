#include "tests/compiler/launcher_program.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/compile.h"
#include "compiler/module/tensor_bytes.h"
#include "compiler/ops/op.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

constexpr char kProgram[] = R"(
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code, const char *what) {
  if (code == 0) return;
  fprintf(stderr, "%s: %d: %s\n", what, code, k_message(code));
  exit(code > 0 && code < 200 ? 10 + code : 9);
}

static void *load(const char *path, size_t bytes) {
  void *memory = malloc(bytes);
  FILE *file = fopen(path, "rb");
  if (memory == NULL || file == NULL) exit(3);
  if (fread(memory, 1, bytes, file) != bytes) exit(3);
  fclose(file);
  return memory;
}

static void store(const char *path, const void *memory, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(memory, 1, bytes, file) != bytes) exit(4);
  fclose(file);
}
)";

// What `device_code` need not say.
constexpr char kDefaults[] = R"(
#ifndef LAUNCH_END
#define LAUNCH_END
#endif

)";

// A second handle beside the first, on a thread of its own.
constexpr char kMain[] = R"(
static void *other_thread(void *unused) {
  k_handle *own;
  check(k_open(&own, 0, NULL), "open on a thread");
  host_calls(own, "thread");
  k_close(own);
  return unused;
}

int main(void) {
  k_handle *handle = NULL;
  pthread_t thread;
  begin();
  check(k_open(&handle, 0, NULL), "open");
  if (k_open(NULL, 0, NULL) != 2) return 5;
  if (pthread_create(&thread, NULL, other_thread, NULL) != 0) return 6;
  host_calls(handle, "host");
  host_calls(handle, "again");
  pthread_join(thread, NULL);
  k_close(handle);
  k_close(NULL);
  check(k_open(&handle, 0, caller_context()), "open in a context");
  device_calls(handle);
  k_close(handle);
  return 0;
}
)";

int64_t Bytes(const TensorDecl& tensor) {
  return tensor.Elements() * DTypeBytes(tensor.dtype);
}

constexpr const char* kWays[] = {"host", "again", "thread", "device"};

}  // namespace

std::vector<LauncherFile> LauncherOf(const std::vector<std::string>& workloads,
                                     const std::string& target_text,
                                     const std::string& choice) {
  const Target target = CompleteTargetOf(target_text);
  std::vector<Module> modules;
  for (const std::string& text : workloads) {
    const auto workload = ParseWorkload(text);
    EXPECT_TRUE(workload.ok()) << StatusText(workload);
    if (!workload.ok()) return {};
    const auto space = CreateSpace(*workload, target, 1);
    EXPECT_TRUE(space.ok()) << StatusText(space);
    if (!space.ok()) return {};
    std::string schedule;
    for (const Schedule& seed : space->Seeds()) {
      if (schedule.empty() &&
          space->Print(seed).find(choice) != std::string::npos) {
        schedule = space->Print(seed);
      }
    }
    EXPECT_NE(schedule, "") << text << ": no seed with " << choice;
    auto part =
        CompilePart(*space, schedule, absl::StrCat("k", modules.size()));
    EXPECT_TRUE(part.ok()) << text << ": " << StatusText(part);
    if (!part.ok()) return {};
    modules.push_back(*std::move(part));
  }
  const auto loadable = LinkParts(modules, target);
  EXPECT_TRUE(loadable.ok()) << StatusText(loadable);
  if (!loadable.ok()) return {};
  LauncherRequest request{.file = "k", .name = "k", .loadable = *loadable};
  for (const Module& module : modules) {
    request.functions.push_back({&module, "default", "a test"});
  }
  const auto files = FindLauncher(target.kind)->write(request);
  EXPECT_TRUE(files.ok()) << StatusText(files);
  return files.ok() ? *files : std::vector<LauncherFile>{};
}

std::string FileWith(const std::vector<LauncherFile>& files,
                     const std::string& extension) {
  for (const LauncherFile& file : files) {
    if (file.extension == extension) return file.bytes;
  }
  return "";
}

LauncherProgram::LauncherProgram(const std::vector<std::string>& workloads,
                                 const std::string& target,
                                 const std::string& device_code,
                                 const std::string& libraries,
                                 const std::string& choice) {
  Make(workloads, target, device_code, libraries, choice);
}

void LauncherProgram::Make(const std::vector<std::string>& workloads,
                           const std::string& target,
                           const std::string& device_code,
                           const std::string& libraries,
                           const std::string& choice) {
  for (const LauncherFile& file : LauncherOf(workloads, target, choice)) {
    testing::WriteFile(absl::StrCat(dir_.path(), "/k", file.extension),
                       file.bytes);
  }
  std::string program =
      absl::StrCat("#include \"k.h\"\n", kProgram, device_code, kDefaults);
  std::string host, device;
  for (const std::string& text : workloads) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload);
    const size_t index = cases_.size();
    cases_.push_back({*workload, SeededInputs(*workload, 5 + index)});
    absl::StrAppend(&program, Function(index));
    absl::StrAppend(&host, "  host_", index, "(handle, way);\n");
    absl::StrAppend(&device, "  device_", index, "(handle);\n");
  }
  absl::StrAppend(
      &program, "static void host_calls(k_handle *handle, const char *way) {\n",
      host, "}\nstatic void device_calls(k_handle *handle) {\n", device, "}\n",
      kMain);
  testing::WriteFile(dir_.path() + "/main.c", program);
  // The launcher as strictly as C99 and C++ can be read.
  const std::string strict = " -Wall -Wextra -pedantic -Werror ";
  const std::string command = absl::StrCat(
      "cd '", dir_.path(), "' && " REGATTA_CXX_COMPILER " -x c++", strict,
      "-fsyntax-only k.c && " REGATTA_C_COMPILER " -std=c99", strict,
      "-fsanitize=undefined -fsanitize-trap=undefined -c k.c "
      "&& " REGATTA_C_COMPILER " -std=c11 -D_GNU_SOURCE",
      strict, "main.c k.o -pthread -ldl ", libraries, " -o main");
  const testing::ProcessResult built =
      testing::RunProcess({"/bin/sh", "-c", command});
  ASSERT_EQ(built.exit_code, 0) << built.err;
}

// host_N and device_N, and the files that they read.
std::string LauncherProgram::Function(size_t index) {
  const Case& test = cases_[index];
  const int64_t out = Bytes(test.workload.tensors.back());
  std::vector<std::string> names;
  std::string load, copy, clean;
  const std::vector<int> inputs =
      test.workload.TensorsWithRole(TensorRole::kInput);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorDecl& tensor = test.workload.tensors[inputs[i]];
    const std::string file = absl::StrCat("k", index, ".", i);
    testing::WriteFile(absl::StrCat(dir_.path(), "/", file),
                       ValuesToBytes(test.inputs[i], tensor.dtype));
    const std::string name = absl::StrCat("a", i);
    names.push_back(name);
    absl::StrAppend(&load, "  void *", name, " = load(\"", file, "\", ",
                    Bytes(tensor), ");\n");
    absl::StrAppend(&copy, "  void *d", name, " = device_new(", Bytes(tensor),
                    ", ", name, ");\n");
    absl::StrAppend(&clean, "  free(", name, ");\n");
  }
  names.push_back("y");
  absl::StrAppend(&load, "  void *y = malloc(", out, ");\n");
  absl::StrAppend(&clean, "  free(y);\n");
  const std::string list = absl::StrJoin(names, ", ");
  const std::string device_list =
      absl::StrCat("d", absl::StrJoin(names, ", d"));
  return absl::StrCat(
      "static void host_", index,
      "(k_handle *handle, const char *way) {\n  char path[64];\n", load,
      "  memset(y, 255, ", out, ");\n  check(k", index, "(handle, ", list,
      "), \"k", index, "\");\n  sprintf(path, \"k", index,
      ".%s\", way);\n  store(path, y, ", out, ");\n  y = NULL;\n  if (k", index,
      "(handle, ", list, ") != 2) exit(7);\n", clean, "}\nstatic void device_",
      index, "(k_handle *handle) {\n", load, copy, "  void *dy = device_new(",
      out, ", NULL);\n  check(k", index, "_launch(handle, ", device_list,
      " LAUNCH_END), \"k", index, "_launch\");\n  device_read(dy, y, ", out,
      ");\n  store(\"k", index, ".device\", y, ", out, ");\n  if (k", index,
      "_launch(NULL, ", device_list, " LAUNCH_END) != 2) exit(8);\n", clean,
      "}\n");
}

testing::ProcessResult LauncherProgram::Run(
    const testing::Environment& environment) {
  return testing::RunProcess(
      {"/bin/sh", "-c", absl::StrCat("cd '", dir_.path(), "' && ./main")},
      environment, absl::Seconds(120));
}

void LauncherProgram::ExpectRightResults() {
  for (size_t i = 0; i < cases_.size(); ++i) {
    const Case& test = cases_[i];
    const TensorDecl& output = test.workload.tensors.back();
    const std::vector<TensorValues> expected =
        Interpret(test.workload, test.inputs);
    for (const char* way : kWays) {
      const std::string bytes = testing::ReadFile(
          absl::StrCat(dir_.path(), "/k", i, ".", std::string(way)));
      ASSERT_EQ(static_cast<int64_t>(bytes.size()), Bytes(output)) << way;
      ExpectNear(test.workload,
                 {ReadValues(bytes.data(), output.Elements(), output.dtype)},
                 expected, absl::StrCat(test.workload.text, ", ", way));
    }
  }
}

}  // namespace regatta
