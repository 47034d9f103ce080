#include "compiler/launcher/cuda_launcher.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "compiler/launcher/launcher_text.h"
#include "compiler/module/cuda_binary.h"

namespace regatta {
namespace {

constexpr char kInterface[] =
    R"(/* A GPU with the code loaded and memory for workspace.
 *
 * One thread at a time may use a handle; different handles may be used by
 * different threads at once. Launches of one handle share its workspace, so
 * they belong to one stream, or to streams that wait for one another.
 *
 * Return codes, of which @_message() tells the meaning:
 *   0 done
 *   1 no memory, on the host or on the GPU
 *   2 a null argument
 *   3 device memory that is not aligned as said below
 *   4 no driver: libcuda.so.1 cannot be opened, or is too old
 *   5 no such GPU
 *   6 the code does not fit this GPU or its driver
 *   1000 + n: the driver's error n (CUresult)
 * After 1, 2 and 3 of a function below nothing was written. After an error of
 * the driver, outputs hold anything, and the context may be lost. */
typedef struct @_handle @_handle;

/* Opens the driver and loads the code; *handle is null unless 0 is returned.
 * `context` is the CUcontext to work in, which must outlive the handle, or
 * null: then it is the primary context of GPU number `device`, which CUDA's
 * runtime uses, too. */
int @_open(@_handle **handle, int device, void *context);
/* Waits for what was launched, and gives everything back. `handle` may be
 * null. */
void @_close(@_handle *handle);
/* Never null; valid for ever. */
const char *@_message(int code);

/* _launch() functions return when the kernels are queued on `stream`, a
 * CUstream or cudaStream_t of the handle's context; null is the default stream.
 * The functions without _launch copy the tensors from and to host memory and
 * return when all is done; they keep device memory for them until the handle is
 * closed. An output may overlap no other tensor; it is written whole. */
)";

// The driver, under the names of its manual less "cu".
constexpr char kDriver[] = R"(
typedef struct {
  int (*Init)(unsigned int flags);
  int (*DeviceGet)(int *device, int ordinal);
  int (*DevicePrimaryCtxRetain)(void **context, int device);
  int (*DevicePrimaryCtxRelease)(int device);
  int (*CtxPushCurrent)(void *context);
  int (*CtxPopCurrent)(void **context);
  int (*CtxSynchronize)(void);
  int (*ModuleLoadData)(void **module, const void *image);
  int (*ModuleUnload)(void *module);
  int (*ModuleGetFunction)(void **kernel, void *module, const char *name);
  int (*FuncSetAttribute)(void *kernel, int attribute, int value);
  int (*MemAlloc)(unsigned long long *address, size_t bytes);
  int (*MemFree)(unsigned long long address);
  int (*MemcpyHtoD)(unsigned long long to, const void *from, size_t bytes);
  int (*MemcpyDtoH)(void *to, unsigned long long from, size_t bytes);
  int (*LaunchKernel)(void *kernel, unsigned int grid_x, unsigned int grid_y,
                      unsigned int grid_z, unsigned int block_x,
                      unsigned int block_y, unsigned int block_z,
                      unsigned int shared_bytes, void *stream,
                      void **parameters, void **extra);
} @_driver;

struct @_handle {
  @_driver cu;
  int device;     /* whose primary context is held; -1: none */
  void *context;
  void *module;
  void *kernels[@_LAUNCHES];
  /* Workspace from the beginning, tensors of host calls from the first. */
  unsigned long long memory[@_BUFFERS];
};

static int @_load_driver(@_driver *cu) {
  /* Stays open: a driver does not like to go. */
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  int missing = 0;
  if (library == NULL) return 4;
  missing |= @_find(library, "cuInit", &cu->Init);
  missing |= @_find(library, "cuDeviceGet", &cu->DeviceGet);
  missing |= @_find(library, "cuDevicePrimaryCtxRetain",
                    &cu->DevicePrimaryCtxRetain);
  missing |= @_find(library, "cuDevicePrimaryCtxRelease_v2",
                    &cu->DevicePrimaryCtxRelease);
  missing |= @_find(library, "cuCtxPushCurrent_v2", &cu->CtxPushCurrent);
  missing |= @_find(library, "cuCtxPopCurrent_v2", &cu->CtxPopCurrent);
  missing |= @_find(library, "cuCtxSynchronize", &cu->CtxSynchronize);
  missing |= @_find(library, "cuModuleLoadData", &cu->ModuleLoadData);
  missing |= @_find(library, "cuModuleUnload", &cu->ModuleUnload);
  missing |= @_find(library, "cuModuleGetFunction", &cu->ModuleGetFunction);
  missing |= @_find(library, "cuFuncSetAttribute", &cu->FuncSetAttribute);
  missing |= @_find(library, "cuMemAlloc_v2", &cu->MemAlloc);
  missing |= @_find(library, "cuMemFree_v2", &cu->MemFree);
  missing |= @_find(library, "cuMemcpyHtoD_v2", &cu->MemcpyHtoD);
  missing |= @_find(library, "cuMemcpyDtoH_v2", &cu->MemcpyDtoH);
  missing |= @_find(library, "cuLaunchKernel", &cu->LaunchKernel);
  return missing;
}

/* The driver's error as a code of this launcher. */
static int @_code(int error) {
  switch (error) {
    case 0:
      return 0;
    case 2: /* out of memory */
      return 1;
    case 100: /* no device */
    case 101: /* invalid device */
      return 5;
    case 200: /* invalid image */
    case 209: /* no binary for this GPU */
    case 218: /* invalid PTX */
    case 222: /* unsupported version of PTX */
    case 500: /* a kernel that is not there */
    case 701: /* out of resources at launch */
      return 6;
    default:
      return 1000 + error;
  }
}
)";

constexpr char kLoading[] = R"(
/* Makes the handle's context the thread's. */
static int @_enter(@_handle *handle) {
  return @_code(handle->cu.CtxPushCurrent(handle->context));
}

static void @_leave(@_handle *handle) {
  void *context;
  handle->cu.CtxPopCurrent(&context);
}

static int @_find_context(@_handle *handle, int ordinal, void *context) {
  int device;
  int error = handle->cu.Init(0);
  if (error != 0) return @_code(error);
  handle->context = context;
  if (context != NULL) return 0;
  error = handle->cu.DeviceGet(&device, ordinal);
  if (error == 0) {
    error = handle->cu.DevicePrimaryCtxRetain(&handle->context, device);
  }
  if (error == 0) handle->device = device;
  return @_code(error);
}

/* The driver compiles PTX, for GPUs that came after the code's. */
static int @_load_ptx(@_handle *handle) {
  const size_t lines = sizeof(@_ptx) / sizeof(@_ptx[0]);
  size_t bytes = 1, i;
  char *text, *end;
  int error;
  for (i = 0; i < lines; ++i) bytes += strlen(@_ptx[i]);
  text = (char *)malloc(bytes);
  if (text == NULL) return 1;
  end = text;
  for (i = 0; i < lines; ++i) {
    const size_t length = strlen(@_ptx[i]);
    memcpy(end, @_ptx[i], length);
    end += length;
  }
  *end = '\0';
  error = handle->cu.ModuleLoadData(&handle->module, text);
  free(text);
  return @_code(error);
}

static int @_load_code(@_handle *handle) {
  const unsigned int most_without_asking = 48u << 10;
  const int max_dynamic_shared_bytes = 8; /* of CUfunction_attribute */
  int code = 0, i;
  if (handle->cu.ModuleLoadData(&handle->module, @_cubin) != 0) {
    handle->module = NULL;
    code = @_load_ptx(handle);
  }
  for (i = 0; i < @_LAUNCHES && code == 0; ++i) {
    const @_launch_info *launch = &@_launches[i];
    code = @_code(handle->cu.ModuleGetFunction(&handle->kernels[i],
                                               handle->module, launch->entry));
    if (code == 0 && launch->shared_bytes > most_without_asking) {
      const int error = handle->cu.FuncSetAttribute(
          handle->kernels[i], max_dynamic_shared_bytes,
          (int)launch->shared_bytes);
      code = error == 1 ? 6 : @_code(error); /* 1: more than this GPU has */
    }
  }
  return code;
}

/* Device memory for buffers [begin, end) that have none. */
static int @_allocate(@_handle *handle, int begin, int end) {
  int code = 0, i;
  for (i = begin; i < end && code == 0; ++i) {
    if (handle->memory[i] != 0) continue;
    code = @_code(
        handle->cu.MemAlloc(&handle->memory[i], @_buffers[i].bytes));
  }
  return code;
}

int @_open(@_handle **result, int device, void *context) {
  @_handle *handle;
  int code, i;
  if (result == NULL) return 2;
  *result = NULL;
  handle = (@_handle *)calloc(1, sizeof(*handle));
  if (handle == NULL) return 1;
  handle->device = -1;
  code = @_load_driver(&handle->cu);
  if (code == 0) code = @_find_context(handle, device, context);
  if (code == 0) code = @_enter(handle);
  if (code == 0) {
    code = @_load_code(handle);
    for (i = 0; i < @_FUNCTIONS && code == 0; ++i) {
      const @_function *f = &@_functions[i];
      code = @_allocate(handle, f->first_buffer + f->tensors,
                        f->first_buffer + f->buffers);
    }
    @_leave(handle);
  }
  if (code != 0) {
    @_close(handle);
    return code;
  }
  *result = handle;
  return 0;
}

void @_close(@_handle *handle) {
  int i;
  if (handle == NULL) return;
  if (handle->context != NULL && @_enter(handle) == 0) {
    handle->cu.CtxSynchronize();
    for (i = 0; i < @_BUFFERS; ++i) {
      if (handle->memory[i] != 0) handle->cu.MemFree(handle->memory[i]);
    }
    if (handle->module != NULL) handle->cu.ModuleUnload(handle->module);
    @_leave(handle);
  }
  if (handle->device >= 0) handle->cu.DevicePrimaryCtxRelease(handle->device);
  free(handle);
}

const char *@_message(int code) {
  switch (code) {
    case 0:
      return "done";
    case 1:
      return "no memory";
    case 2:
      return "a null argument";
    case 3:
      return "device memory that is not aligned to 64 bytes";
    case 4:
      return "no CUDA driver: libcuda.so.1 cannot be opened or is too old";
    case 5:
      return "no such GPU";
    case 6:
      return "the code does not fit this GPU or its driver";
    default:
      return code > 1000 ? "the CUDA driver failed; its error is the code "
                           "less 1000"
                         : "no code of this launcher";
  }
}
)";

constexpr char kCalling[] = R"(
/* Queues the kernels. REQUIRES: the handle's context is the thread's. */
static int @_queue(@_handle *handle, const @_function *function,
                   const unsigned long long *tensors, void *stream) {
  unsigned long long addresses[@_MOST_ARGUMENTS];
  void *parameters[@_MOST_ARGUMENTS];
  int i, a;
  for (i = 0; i < function->launches; ++i) {
    const int number = function->first_launch + i;
    const @_launch_info *launch = &@_launches[number];
    int error;
    for (a = 0; a < launch->arguments; ++a) {
      const int buffer = @_arguments[launch->first_argument + a];
      addresses[a] = buffer < function->tensors
                         ? tensors[buffer]
                         : handle->memory[function->first_buffer + buffer];
      parameters[a] = &addresses[a];
    }
    error = handle->cu.LaunchKernel(
        handle->kernels[number], launch->grid[0], launch->grid[1],
        launch->grid[2], launch->group[0], launch->group[1], launch->group[2],
        launch->shared_bytes, stream, parameters, NULL);
    if (error != 0) return @_code(error);
  }
  return 0;
}

/* `tensors` in device memory. */
static int @_run(@_handle *handle, const @_function *function,
                 const void *const *tensors, void *stream) {
  unsigned long long addresses[@_MOST_TENSORS];
  int code, i;
  if (handle == NULL) return 2;
  for (i = 0; i < function->tensors; ++i) {
    addresses[i] = (unsigned long long)(uintptr_t)tensors[i];
    if (addresses[i] == 0) return 2;
    if (addresses[i] % 64 != 0) return 3;
  }
  code = @_enter(handle);
  if (code != 0) return code;
  code = @_queue(handle, function, addresses, stream);
  @_leave(handle);
  return code;
}

/* `tensors` in host memory. Copies of the default stream wait for what was
 * queued there, and the host for them. */
static int @_copy_and_run(@_handle *handle, const @_function *function,
                          const void *const *tensors) {
  const @_buffer *buffers = &@_buffers[function->first_buffer];
  unsigned long long *memory = &handle->memory[function->first_buffer];
  int i;
  int code = @_allocate(handle, function->first_buffer,
                        function->first_buffer + function->tensors);
  for (i = 0; i < function->tensors && code == 0; ++i) {
    if (buffers[i].written) continue;
    code = @_code(
        handle->cu.MemcpyHtoD(memory[i], tensors[i], buffers[i].bytes));
  }
  if (code == 0) code = @_queue(handle, function, memory, NULL);
  for (i = 0; i < function->tensors && code == 0; ++i) {
    if (!buffers[i].written) continue;
    code = @_code(handle->cu.MemcpyDtoH((void *)(uintptr_t)tensors[i],
                                        memory[i], buffers[i].bytes));
  }
  return code;
}

static int @_call(@_handle *handle, const @_function *function,
                  const void *const *tensors) {
  int code, i;
  if (handle == NULL) return 2;
  for (i = 0; i < function->tensors; ++i) {
    if (tensors[i] == NULL) return 2;
  }
  code = @_enter(handle);
  if (code != 0) return code;
  code = @_copy_and_run(handle, function, tensors);
  @_leave(handle);
  return code;
}
)";

const LauncherWords& Words() {
  static const LauncherWords& words =
      *new LauncherWords{.device = "NVIDIA GPUs",
                         .memory_type = nullptr,
                         .memory = "in device memory, each aligned to 64 bytes",
                         .launch_parameters = ", void *stream",
                         .launch_arguments = ", stream",
                         .interface = kInterface};
  return words;
}

}  // namespace

absl::StatusOr<std::vector<LauncherFile>> WriteCudaLauncher(
    const LauncherRequest& request) {
  ASSIGN_OR_RETURN(const CudaBinary binary, ParseCudaBinary(request.loadable));
  std::string source;
  for (const HeaderFunction& function : request.functions) {
    absl::StrAppend(&source, source.empty() ? "" : "\n",
                    function.module->relocatable);
  }
  std::string launcher = WithName(
      absl::StrCat("/* Generated by Regatta: the launcher of ", request.file,
                   ".h, with code "
                   "for ",
                   binary.arch, " and PTX for later\n * GPUs. */\n"),
      request);
  absl::StrAppend(
      &launcher, "#include \"", request.file, ".h\"\n\n",
      "#include <dlfcn.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
      LauncherTables(request), LauncherLookup(request),
      WithName(kDriver, request), "\n",
      WordsOfBytes(request.name + "_cubin", binary.cubin), "\n",
      LinesOfText(request.name + "_ptx", binary.ptx),
      WithName(kLoading, request), WithName(kCalling, request),
      LauncherFunctions(request, Words()));
  return std::vector<LauncherFile>{
      {".h", LauncherHeader(request, Words())},
      {".c", std::move(launcher)},
      {".cu", std::move(source)},
      {".cubin", binary.cubin},
      {".ptx", binary.ptx},
  };
}

}  // namespace regatta
