#include "tests/compiler/oclgrind_run.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

#include "compiler/module/tensor_bytes.h"

namespace regatta {
namespace {

using opencl::Api;

constexpr size_t kMaxText = 4000;  // of complaints
// Where Debian has the driver.
constexpr char kDriver[] = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";

// Everything that one run made; an error fails the test, once.
class Session {
 public:
  Session(const opencl::FoundDevice& found, const Module& module)
      : api_(*found.api), device_(found.device), module_(module) {
    int32_t error = 0;
    context_ =
        api_.CreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
    Expect(error, "context");
    queue_ = api_.CreateCommandQueue(context_, device_, 0, &error);
    Expect(error, "queue");
    const char* source = module.loadable.data();
    const size_t bytes = module.loadable.size();
    program_ =
        api_.CreateProgramWithSource(context_, 1, &source, &bytes, &error);
    Expect(error, "source");
    Expect(api_.BuildProgram(program_, 1, &device_, "", nullptr, nullptr),
           "compiling");
  }
  ~Session() {
    for (const opencl::Memory memory : buffers_) api_.ReleaseMemObject(memory);
    api_.ReleaseProgram(program_);
    api_.ReleaseCommandQueue(queue_);
    api_.ReleaseContext(context_);
  }

  void AddBuffers(const std::vector<TensorValues>& inputs) {
    size_t next = 0;
    for (const ModuleBuffer& buffer : module_.buffers) {
      int32_t error = 0;
      const auto bytes = static_cast<size_t>(buffer.bytes);
      if (buffer.image_width > 0) {
        const opencl::ImageFormat format = {
            opencl::kRgba,
            buffer.dtype == DType::kF16 ? opencl::kHalfFloat : opencl::kFloat};
        opencl::ImageDescription image;
        image.width = static_cast<size_t>(buffer.image_width);
        image.height = static_cast<size_t>(buffer.image_height);
        buffers_.push_back(api_.CreateImage(context_, opencl::kMemReadWrite,
                                            &format, &image, nullptr, &error));
        Expect(error, buffer.name);
        continue;
      }
      buffers_.push_back(api_.CreateBuffer(context_, opencl::kMemReadWrite,
                                           bytes, nullptr, &error));
      Expect(error, buffer.name);
      if (buffer.role != BufferRole::kInput) continue;
      const std::string data = ValuesToBytes(inputs[next++], buffer.dtype);
      Expect(api_.EnqueueWriteBuffer(queue_, buffers_.back(), 1, 0, bytes,
                                     data.data(), 0, nullptr, nullptr),
             buffer.name);
    }
  }

  void Launch(const ModuleKernel& kernel) {
    int32_t error = 0;
    const opencl::Kernel launched =
        api_.CreateKernel(program_, kernel.entry.c_str(), &error);
    Expect(error, kernel.entry);
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
      Expect(api_.SetKernelArg(launched, static_cast<uint32_t>(i),
                               sizeof(opencl::Memory),
                               &buffers_[kernel.arguments[i]]),
             kernel.entry);
    }
    size_t global[3], local[3];
    for (size_t d = 0; d < kernel.grid.size(); ++d) {
      local[d] = static_cast<size_t>(kernel.group[d]);
      global[d] = static_cast<size_t>(kernel.grid[d]) * local[d];
    }
    Expect(api_.EnqueueNDRangeKernel(
               queue_, launched, static_cast<uint32_t>(kernel.grid.size()),
               nullptr, global, local, 0, nullptr, nullptr),
           kernel.entry);
    Expect(api_.Finish(queue_), kernel.entry);
    api_.ReleaseKernel(launched);
  }

  std::vector<TensorValues> Outputs() {
    std::vector<TensorValues> outputs;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const ModuleBuffer& buffer = module_.buffers[i];
      if (buffer.role != BufferRole::kOutput) continue;
      std::string bytes(static_cast<size_t>(buffer.bytes), '\0');
      Expect(api_.EnqueueReadBuffer(queue_, buffers_[i], 1, 0, bytes.size(),
                                    bytes.data(), 0, nullptr, nullptr),
             buffer.name);
      outputs.push_back(ReadValues(
          bytes.data(), buffer.bytes / DTypeBytes(buffer.dtype), buffer.dtype));
    }
    return outputs;
  }

 private:
  void Expect(int32_t error, const std::string& what) {
    EXPECT_EQ(error, opencl::kSuccess)
        << what << ": " << opencl::ErrorName(error);
  }

  const Api& api_;
  const opencl::Device device_;
  const Module& module_;
  opencl::Context context_ = nullptr;
  opencl::Queue queue_ = nullptr;
  opencl::Program program_ = nullptr;
  std::vector<opencl::Memory> buffers_;
};

// What the process writes to standard error while this lives: Oclgrind writes
// to a file of its own only when the process ends.
class CapturedErrors {
 public:
  CapturedErrors() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~CapturedErrors() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(file_);
  }
  std::string Text() const {
    std::fflush(stderr);
    std::string text;
    char block[4096];
    ssize_t n = 0;
    while (text.size() < kMaxText &&
           (n = pread(fileno(file_), block, sizeof(block),
                      static_cast<off_t>(text.size()))) > 0) {
      text.append(block, static_cast<size_t>(n));
    }
    return text;
  }

 private:
  std::FILE* const file_;
  const int before_;
};

}  // namespace

Oclgrind::Oclgrind() {
  if (access(kDriver, R_OK) != 0) {
    missing_ = "no oclgrind here: install oclgrind";
    return;
  }
  setenv("OCL_ICD_VENDORS", kDriver, 1);
  setenv("OCLGRIND_DATA_RACES", "1", 1);
  // Counted over the whole process.
  setenv("OCLGRIND_MAX_ERRORS", "1000000", 1);
  setenv("OCLGRIND_NUM_THREADS", "1", 1);
  const auto found = opencl::FindDevice("");
  if (!found.ok()) {
    missing_ = std::string(found.status().message());
  } else {
    found_ = *found;
  }
}

Oclgrind::Result Oclgrind::Run(const Module& module,
                               const std::vector<TensorValues>& inputs) const {
  Result result;
  const CapturedErrors errors;
  {
    Session session(found_, module);
    if (testing::Test::HasFailure()) return result;
    session.AddBuffers(inputs);
    for (const int index : module.host_sequence) {
      session.Launch(module.kernels[index]);
    }
    result.outputs = session.Outputs();
  }
  result.complaints = errors.Text();
  return result;
}

}  // namespace regatta
