#include "compiler/launcher/opencl_launcher.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "compiler/launcher/launcher_text.h"

namespace regatta {
namespace {

constexpr char kInterface[] =
    R"(/* An OpenCL device with the code compiled and memory for workspace.
 *
 * One thread at a time may use a handle; different handles may be used by
 * different threads at once.
 *
 * Return codes, of which @_message() tells the meaning:
 *   0 done
 *   1 no memory, on the host or on the device
 *   2 a null argument
 *   4 no OpenCL: libOpenCL.so.1 cannot be opened, or is too old
 *   5 no such device
 *   6 the code does not fit this device, or its driver does not compile it
 *   7 the queue executes commands out of order
 *   below 0: the error of OpenCL
 * After 1, 2 and 7 of a function below nothing was written. After an error of
 * OpenCL, outputs hold anything. */
typedef struct @_handle @_handle;

/* Opens OpenCL and lets the device's driver compile the code; *handle is null
 * unless 0 is returned. `queue` is the cl_command_queue to work in, on whose
 * device and in whose context, or null: then it is a new one on device number
 * `device` of those that are available and have a compiler, counted over all
 * platforms in their order. */
int @_open(@_handle **handle, int device, void *queue);
/* Waits for what was queued, and gives everything back. `handle` may be
 * null. */
void @_close(@_handle *handle);
/* The cl_command_queue and the cl_context. */
void *@_queue(const @_handle *handle);
void *@_context(const @_handle *handle);
/* Never null; valid for ever. */
const char *@_message(int code);

/* _launch() functions return when the kernels are queued. The functions without
 * _launch copy the tensors from and to host memory and return when all is done;
 * they keep device memory for them until the handle is closed. An output may
 * overlap no other tensor; it is written whole. */
)";

// OpenCL, under the names of its specification less "cl".
constexpr char kDriver[] = R"(
typedef struct {
  int (*GetPlatformIDs)(unsigned int room, void **platforms,
                        unsigned int *count);
  int (*GetDeviceIDs)(void *platform, uint64_t type, unsigned int room,
                      void **devices, unsigned int *count);
  int (*GetDeviceInfo)(void *device, unsigned int name, size_t room,
                       void *value, size_t *bytes);
  void *(*CreateContext)(const void *properties, unsigned int count,
                         void *const *devices, void *notify, void *data,
                         int *error);
  int (*RetainContext)(void *context);
  int (*ReleaseContext)(void *context);
  void *(*CreateCommandQueue)(void *context, void *device,
                              uint64_t properties, int *error);
  int (*RetainCommandQueue)(void *queue);
  int (*ReleaseCommandQueue)(void *queue);
  int (*GetCommandQueueInfo)(void *queue, unsigned int name, size_t room,
                             void *value, size_t *bytes);
  void *(*CreateProgramWithSource)(void *context, unsigned int count,
                                   const char **lines, const size_t *lengths,
                                   int *error);
  int (*BuildProgram)(void *program, unsigned int count,
                      void *const *devices, const char *options, void *notify,
                      void *data);
  int (*ReleaseProgram)(void *program);
  void *(*CreateKernel)(void *program, const char *name, int *error);
  int (*ReleaseKernel)(void *kernel);
  int (*SetKernelArg)(void *kernel, unsigned int index, size_t bytes,
                      const void *value);
  void *(*CreateBuffer)(void *context, uint64_t flags, size_t bytes,
                        void *host, int *error);
  void *(*CreateImage)(void *context, uint64_t flags, const void *format,
                       const void *description, void *host, int *error);
  int (*ReleaseMemObject)(void *memory);
  int (*EnqueueNDRangeKernel)(void *queue, void *kernel,
                              unsigned int dimensions, const size_t *offset,
                              const size_t *global, const size_t *local,
                              unsigned int waits, void *const *wait,
                              void **event);
  int (*EnqueueWriteBuffer)(void *queue, void *memory, unsigned int blocking,
                            size_t offset, size_t bytes, const void *from,
                            unsigned int waits, void *const *wait,
                            void **event);
  int (*EnqueueReadBuffer)(void *queue, void *memory, unsigned int blocking,
                           size_t offset, size_t bytes, void *to,
                           unsigned int waits, void *const *wait,
                           void **event);
  int (*Finish)(void *queue);
} @_driver;

struct @_handle {
  @_driver cl;
  void *device, *context, *queue, *program;
  void *kernels[@_LAUNCHES];
  /* Workspace from the beginning, tensors of host calls from the first. */
  void *memory[@_BUFFERS];
};

static int @_load_driver(@_driver *cl) {
  /* Stays open: drivers do not like to go. */
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
  int missing = 0;
  if (library == NULL) return 4;
  missing |= @_find(library, "clGetPlatformIDs", &cl->GetPlatformIDs);
  missing |= @_find(library, "clGetDeviceIDs", &cl->GetDeviceIDs);
  missing |= @_find(library, "clGetDeviceInfo", &cl->GetDeviceInfo);
  missing |= @_find(library, "clCreateContext", &cl->CreateContext);
  missing |= @_find(library, "clRetainContext", &cl->RetainContext);
  missing |= @_find(library, "clReleaseContext", &cl->ReleaseContext);
  missing |= @_find(library, "clCreateCommandQueue", &cl->CreateCommandQueue);
  missing |= @_find(library, "clRetainCommandQueue", &cl->RetainCommandQueue);
  missing |= @_find(library, "clReleaseCommandQueue",
                    &cl->ReleaseCommandQueue);
  missing |= @_find(library, "clGetCommandQueueInfo",
                    &cl->GetCommandQueueInfo);
  missing |= @_find(library, "clCreateProgramWithSource",
                    &cl->CreateProgramWithSource);
  missing |= @_find(library, "clBuildProgram", &cl->BuildProgram);
  missing |= @_find(library, "clReleaseProgram", &cl->ReleaseProgram);
  missing |= @_find(library, "clCreateKernel", &cl->CreateKernel);
  missing |= @_find(library, "clReleaseKernel", &cl->ReleaseKernel);
  missing |= @_find(library, "clSetKernelArg", &cl->SetKernelArg);
  missing |= @_find(library, "clCreateBuffer", &cl->CreateBuffer);
  missing |= @_find(library, "clCreateImage", &cl->CreateImage);
  missing |= @_find(library, "clReleaseMemObject", &cl->ReleaseMemObject);
  missing |= @_find(library, "clEnqueueNDRangeKernel",
                    &cl->EnqueueNDRangeKernel);
  missing |= @_find(library, "clEnqueueWriteBuffer", &cl->EnqueueWriteBuffer);
  missing |= @_find(library, "clEnqueueReadBuffer", &cl->EnqueueReadBuffer);
  missing |= @_find(library, "clFinish", &cl->Finish);
  return missing;
}

/* OpenCL's error as a code of this launcher. */
static int @_code(int error) {
  switch (error) {
    case -4:  /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    case -6:  /* CL_OUT_OF_HOST_MEMORY */
    case -61: /* CL_INVALID_BUFFER_SIZE */
      return 1;
    case -1:    /* CL_DEVICE_NOT_FOUND */
    case -1001: /* CL_PLATFORM_NOT_FOUND_KHR */
      return 5;
    case -11: /* CL_BUILD_PROGRAM_FAILURE */
    case -46: /* CL_INVALID_KERNEL_NAME */
    case -54: /* CL_INVALID_WORK_GROUP_SIZE */
    case -55: /* CL_INVALID_WORK_ITEM_SIZE */
      return 6;
    default:
      return error;
  }
}
)";

constexpr char kLoading[] = R"(
enum { @_MOST_PLATFORMS = 16, @_MOST_DEVICES = 64 };

static int @_is_usable(const @_driver *cl, void *device) {
  const unsigned int available = 0x1027, compiler_available = 0x1028;
  unsigned int answers[2] = {0, 0};
  cl->GetDeviceInfo(device, available, sizeof(answers[0]), &answers[0], NULL);
  cl->GetDeviceInfo(device, compiler_available, sizeof(answers[1]),
                    &answers[1], NULL);
  return answers[0] != 0 && answers[1] != 0;
}

static int @_find_device(@_handle *handle, int ordinal) {
  const uint64_t all_types = 0xFFFFFFFFu;
  void *platforms[@_MOST_PLATFORMS];
  unsigned int platform_count = 0, p, d;
  int error;
  if (ordinal < 0) return 5;
  error = handle->cl.GetPlatformIDs(@_MOST_PLATFORMS, platforms,
                                    &platform_count);
  if (error != 0) return @_code(error);
  for (p = 0; p < platform_count && p < @_MOST_PLATFORMS; ++p) {
    void *devices[@_MOST_DEVICES];
    unsigned int count = 0;
    if (handle->cl.GetDeviceIDs(platforms[p], all_types, @_MOST_DEVICES,
                                devices, &count) != 0) {
      continue; /* has none */
    }
    for (d = 0; d < count && d < @_MOST_DEVICES; ++d) {
      if (!@_is_usable(&handle->cl, devices[d]) || ordinal-- != 0) continue;
      handle->device = devices[d];
      return 0;
    }
  }
  return 5;
}

static int @_make_queue(@_handle *handle, int ordinal) {
  int error;
  const int code = @_find_device(handle, ordinal);
  if (code != 0) return code;
  handle->context = handle->cl.CreateContext(NULL, 1, &handle->device, NULL,
                                             NULL, &error);
  if (error != 0) return @_code(error);
  handle->queue = handle->cl.CreateCommandQueue(handle->context,
                                                handle->device, 0, &error);
  return @_code(error);
}

static int @_take_queue(@_handle *handle, void *queue) {
  const unsigned int of_context = 0x1090, of_device = 0x1091;
  const unsigned int of_properties = 0x1093;
  const uint64_t out_of_order = 1;
  uint64_t properties = 0;
  void *context = NULL;
  int error = handle->cl.GetCommandQueueInfo(queue, of_context,
                                             sizeof(context), &context, NULL);
  if (error == 0) {
    error = handle->cl.GetCommandQueueInfo(queue, of_device,
                                           sizeof(handle->device),
                                           &handle->device, NULL);
  }
  if (error == 0) {
    error = handle->cl.GetCommandQueueInfo(
        queue, of_properties, sizeof(properties), &properties, NULL);
  }
  if (error == 0 && (properties & out_of_order) != 0) return 7;
  if (error == 0) error = handle->cl.RetainContext(context);
  if (error == 0) handle->context = context;
  if (error == 0) error = handle->cl.RetainCommandQueue(queue);
  if (error == 0) handle->queue = queue;
  return @_code(error);
}

static int @_load_code(@_handle *handle) {
  int error, i;
  handle->program = handle->cl.CreateProgramWithSource(
      handle->context, (unsigned int)(sizeof(@_source) / sizeof(@_source[0])),
      (const char **)@_source, NULL, &error);
  if (error == 0) {
    error = handle->cl.BuildProgram(handle->program, 1, &handle->device, "",
                                    NULL, NULL);
  }
  for (i = 0; i < @_LAUNCHES && error == 0; ++i) {
    handle->kernels[i] = handle->cl.CreateKernel(
        handle->program, @_launches[i].entry, &error);
  }
  return @_code(error);
}

/* A two-dimensional image of pixels of four elements. */
static void *@_image(@_handle *handle, const @_buffer *buffer, int *error) {
  const uint64_t read_write = 1;
  struct {
    unsigned int order, type;
  } format;
  struct {
    unsigned int kind;
    size_t width, height, depth, layers, row_bytes, layer_bytes;
    unsigned int mip_levels, samples;
    void *memory;
  } description;
  memset(&description, 0, sizeof(description));
  format.order = 0x10B5;
  format.type = buffer->half ? 0x10DD : 0x10DE;
  description.kind = 0x10F1;
  description.width = (size_t)buffer->image_width;
  description.height = (size_t)buffer->image_height;
  return handle->cl.CreateImage(handle->context, read_write, &format,
                                &description, NULL, error);
}

/* Device memory for buffers [begin, end) that have none. */
static int @_allocate(@_handle *handle, int begin, int end) {
  const uint64_t read_write = 1;
  int error = 0, i;
  for (i = begin; i < end && error == 0; ++i) {
    if (handle->memory[i] != NULL) continue;
    handle->memory[i] =
        @_buffers[i].image_width > 0
            ? @_image(handle, &@_buffers[i], &error)
            : handle->cl.CreateBuffer(handle->context, read_write,
                                      @_buffers[i].bytes, NULL, &error);
  }
  return @_code(error);
}

int @_open(@_handle **result, int device, void *queue) {
  @_handle *handle;
  int code, i;
  if (result == NULL) return 2;
  *result = NULL;
  handle = (@_handle *)calloc(1, sizeof(*handle));
  if (handle == NULL) return 1;
  code = @_load_driver(&handle->cl);
  if (code == 0) {
    code = queue != NULL ? @_take_queue(handle, queue)
                         : @_make_queue(handle, device);
  }
  if (code == 0) code = @_load_code(handle);
  for (i = 0; i < @_FUNCTIONS && code == 0; ++i) {
    const @_function *f = &@_functions[i];
    code = @_allocate(handle, f->first_buffer + f->tensors,
                      f->first_buffer + f->buffers);
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
  if (handle->queue != NULL) handle->cl.Finish(handle->queue);
  for (i = 0; i < @_LAUNCHES; ++i) {
    if (handle->kernels[i] != NULL) handle->cl.ReleaseKernel(handle->kernels[i]);
  }
  for (i = 0; i < @_BUFFERS; ++i) {
    if (handle->memory[i] != NULL) {
      handle->cl.ReleaseMemObject(handle->memory[i]);
    }
  }
  if (handle->program != NULL) handle->cl.ReleaseProgram(handle->program);
  if (handle->queue != NULL) handle->cl.ReleaseCommandQueue(handle->queue);
  if (handle->context != NULL) handle->cl.ReleaseContext(handle->context);
  free(handle);
}

void *@_queue(const @_handle *handle) { return handle->queue; }

void *@_context(const @_handle *handle) { return handle->context; }

const char *@_message(int code) {
  switch (code) {
    case 0:
      return "done";
    case 1:
      return "no memory";
    case 2:
      return "a null argument";
    case 4:
      return "no OpenCL: libOpenCL.so.1 cannot be opened or is too old";
    case 5:
      return "no such OpenCL device";
    case 6:
      return "the code does not fit this device or is not compiled by its "
             "driver";
    case 7:
      return "the queue executes commands out of order";
    default:
      return code < 0 ? "OpenCL failed; the code is its error"
                      : "no code of this launcher";
  }
}
)";

constexpr char kCalling[] = R"(
/* `tensors` are buffers of OpenCL. Queues the kernels. */
static int @_run(@_handle *handle, const @_function *function,
                 const void *const *tensors) {
  int i, a;
  if (handle == NULL) return 2;
  for (i = 0; i < function->tensors; ++i) {
    if (tensors[i] == NULL) return 2;
  }
  for (i = 0; i < function->launches; ++i) {
    const int number = function->first_launch + i;
    const @_launch_info *launch = &@_launches[number];
    size_t global[3], local[3];
    int error = 0;
    for (a = 0; a < launch->arguments && error == 0; ++a) {
      const int buffer = @_arguments[launch->first_argument + a];
      const void *memory = buffer < function->tensors
                               ? tensors[buffer]
                               : handle->memory[function->first_buffer + buffer];
      error = handle->cl.SetKernelArg(handle->kernels[number], (unsigned int)a,
                                      sizeof(memory), &memory);
    }
    for (a = 0; a < 3; ++a) {
      local[a] = launch->group[a];
      global[a] = (size_t)launch->grid[a] * local[a];
    }
    if (error == 0) {
      error = handle->cl.EnqueueNDRangeKernel(handle->queue,
                                              handle->kernels[number], 3, NULL,
                                              global, local, 0, NULL, NULL);
    }
    if (error != 0) return @_code(error);
  }
  return 0;
}

/* `tensors` in host memory. */
static int @_call(@_handle *handle, const @_function *function,
                  const void *const *tensors) {
  const @_buffer *buffers = &@_buffers[function->first_buffer];
  const void *memory[@_MOST_TENSORS];
  int code, i;
  if (handle == NULL) return 2;
  for (i = 0; i < function->tensors; ++i) {
    if (tensors[i] == NULL) return 2;
  }
  code = @_allocate(handle, function->first_buffer,
                    function->first_buffer + function->tensors);
  for (i = 0; i < function->tensors && code == 0; ++i) {
    void *own = handle->memory[function->first_buffer + i];
    memory[i] = own;
    if (buffers[i].written) continue;
    code = @_code(handle->cl.EnqueueWriteBuffer(handle->queue, own, 1, 0,
                                                buffers[i].bytes, tensors[i],
                                                0, NULL, NULL));
  }
  if (code == 0) code = @_run(handle, function, memory);
  for (i = 0; i < function->tensors && code == 0; ++i) {
    if (!buffers[i].written) continue;
    code = @_code(handle->cl.EnqueueReadBuffer(
        handle->queue, handle->memory[function->first_buffer + i], 1, 0,
        buffers[i].bytes, (void *)(uintptr_t)tensors[i], 0, NULL, NULL));
  }
  return code;
}
)";

const LauncherWords& Words() {
  static const LauncherWords& words =
      *new LauncherWords{.device = "OpenCL devices",
                         .memory_type = "void *",
                         .memory = "cl_mem of the handle's context",
                         .launch_parameters = "",
                         .launch_arguments = "",
                         .interface = kInterface};
  return words;
}

}  // namespace

absl::StatusOr<std::vector<LauncherFile>> WriteOpenClLauncher(
    const LauncherRequest& request) {
  std::string launcher =
      absl::StrCat("/* Generated by Regatta: the launcher of ", request.file,
                   ".h. */\n#include \"", request.file,
                   ".h\"\n\n#include <dlfcn.h>\n#include <stdlib.h>\n#include "
                   "<string.h>\n\n",
                   LauncherTables(request), LauncherLookup(request),
                   WithName(kDriver, request), "\n",
                   LinesOfText(request.name + "_source", request.loadable),
                   WithName(kLoading, request), WithName(kCalling, request),
                   LauncherFunctions(request, Words()));
  return std::vector<LauncherFile>{{".h", LauncherHeader(request, Words())},
                                   {".c", std::move(launcher)},
                                   {".cl", request.loadable}};
}

}  // namespace regatta
