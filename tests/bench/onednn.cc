#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "oneapi/dnnl/dnnl.h"
#include "tests/bench/peers.h"

namespace regatta::bench {

// The entry points used, by the types that the header declares.
struct OneDnn::Api {
#define REGATTA_DNNL_FUNCTIONS(X)                                            \
  X(dnnl_version) X(dnnl_engine_create) X(dnnl_stream_create)                \
  X(dnnl_stream_wait) X(dnnl_memory_desc_create_with_tag)                    \
  X(dnnl_convolution_forward_primitive_desc_create)                          \
  X(dnnl_primitive_desc_query_md) X(dnnl_primitive_desc_query)               \
  X(dnnl_primitive_create) X(dnnl_memory_create) X(dnnl_primitive_execute)   \
  X(dnnl_reorder_primitive_desc_create)
#define X(name) decltype(&::name) name = nullptr;
  REGATTA_DNNL_FUNCTIONS(X)
#undef X
};

namespace {

absl::Status Check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("oneDNN: ", what, " returned ",
                                          static_cast<int>(status)));
}

}  // namespace

#define DNNL_RETURN(call, what)                                \
  if (absl::Status s = Check((call), what); !s.ok()) return s

absl::StatusOr<OneDnn> OneDnn::Open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(dlerror());
  auto api = std::make_shared<Api>();
#define X(name)                                                             \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(handle, #name));  \
  if (api->name == nullptr) {                                               \
    return absl::NotFoundError(path + " has no " #name);                    \
  }
  REGATTA_DNNL_FUNCTIONS(X)
#undef X
  OneDnn library;
  library.api_ = api;
  return library;
}

std::string OneDnn::version() const {
  const dnnl_version_t* v = api_->dnnl_version();
  return absl::StrCat(v->major, ".", v->minor, ".", v->patch);
}

absl::StatusOr<Call> OneDnn::Convolution(const ConvShape& s, const float* x,
                                         const float* w, float* y,
                                         std::string* impl) const {
  const Api& api = *api_;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  DNNL_RETURN(api.dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
  DNNL_RETURN(
      api.dnnl_stream_create(&stream, engine, dnnl_stream_default_flags),
      "stream");
  const int64_t oh = (s.h + 2 * s.pad - s.kh) / s.stride + 1;
  const int64_t ow = (s.w + 2 * s.pad - s.kw) / s.stride + 1;
  const dnnl_dims_t x_dims = {s.n, s.ci, s.h, s.w};
  const dnnl_dims_t w_dims = {s.co, s.ci, s.kh, s.kw};
  const dnnl_dims_t y_dims = {s.n, s.co, oh, ow};
  const dnnl_dims_t strides = {s.stride, s.stride};
  const dnnl_dims_t dilates = {0, 0};
  const dnnl_dims_t pads = {s.pad, s.pad};
  dnnl_memory_desc_t x_md, w_user_md, w_any_md, y_md;
  auto describe = [&](dnnl_memory_desc_t* md, const dnnl_dims_t dims,
                      dnnl_format_tag_t tag) {
    return Check(api.dnnl_memory_desc_create_with_tag(md, 4, dims, dnnl_f32,
                                                      tag),
                 "memory descriptor");
  };
  for (absl::Status status :
       {describe(&x_md, x_dims, dnnl_nhwc), describe(&y_md, y_dims, dnnl_nhwc),
        describe(&w_user_md, w_dims, dnnl_hwio),
        describe(&w_any_md, w_dims, dnnl_format_tag_any)}) {
    if (!status.ok()) return status;
  }
  dnnl_primitive_desc_t pd;
  DNNL_RETURN(api.dnnl_convolution_forward_primitive_desc_create(
                  &pd, engine, dnnl_forward_inference, dnnl_convolution_direct,
                  x_md, w_any_md, nullptr, y_md, strides, dilates, pads, pads,
                  nullptr),
              "convolution descriptor");
  const char* name = nullptr;
  api.dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
  *impl = name == nullptr ? "unknown" : name;
  dnnl_primitive_t convolution;
  DNNL_RETURN(api.dnnl_primitive_create(&convolution, pd), "convolution");

  const_dnnl_memory_desc_t w_md =
      api.dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  dnnl_memory_t x_mem, w_user, w_mem, y_mem;
  DNNL_RETURN(api.dnnl_memory_create(&x_mem, x_md, engine,
                                     const_cast<float*>(x)), "input");
  DNNL_RETURN(api.dnnl_memory_create(&w_user, w_user_md, engine,
                                     const_cast<float*>(w)), "weights");
  DNNL_RETURN(
      api.dnnl_memory_create(&w_mem, w_md, engine, DNNL_MEMORY_ALLOCATE),
      "reordered weights");
  DNNL_RETURN(api.dnnl_memory_create(&y_mem, y_md, engine, y), "output");
  dnnl_primitive_desc_t reorder_pd;
  dnnl_primitive_t reorder;
  DNNL_RETURN(api.dnnl_reorder_primitive_desc_create(
                  &reorder_pd, w_user_md, engine, w_md, engine, nullptr),
              "reorder descriptor");
  DNNL_RETURN(api.dnnl_primitive_create(&reorder, reorder_pd), "reorder");
  const dnnl_exec_arg_t reorder_args[] = {{DNNL_ARG_FROM, w_user},
                                          {DNNL_ARG_TO, w_mem}};
  DNNL_RETURN(api.dnnl_primitive_execute(reorder, stream, 2, reorder_args),
              "reorder run");
  DNNL_RETURN(api.dnnl_stream_wait(stream), "reorder wait");
  return [=, api = api_] {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, x_mem},
                                    {DNNL_ARG_WEIGHTS, w_mem},
                                    {DNNL_ARG_DST, y_mem}};
    api->dnnl_primitive_execute(convolution, stream, 3, args);
    api->dnnl_stream_wait(stream);
  };
}

}  // namespace regatta::bench
