/* Launches by address: the source's host code calls `__nvtune_NAME` in place of the runtime's NAME. The launch stub of a
   kernel that has one of nvtune's makes the launch; all others go on to the runtime. */
namespace __nvtune_detail {
/* A launch by address, while a kernel's stub makes it. `configuration` is the program's cudaLaunchConfig_t, or null. */
struct Call {
  ::dim3 grid, block;
  ::size_t shared;
  cudaStream_t stream;
  const void *configuration;
  cudaError_t error;
};
/* The launch stub of a kernel: the address that the program has of the kernel, and what calls the stub. */
struct Stub {
  const void *kernel;
  bool (*run)(void **arguments, Call *call);
};
/* The stubs of one source. Sources that include the same template may share one copy of it, so that the launches of one
   reach the functions of another: all sources of a program or shared library are in one list. */
struct StubList {
  const Stub *stubs;
  int count;
  StubList *next;
};
}

extern "C" {
__attribute__((weak, visibility("hidden"))) __nvtune_detail::StubList *__nvtune_stubs_1 = 0;
/* The launch by address that this thread's stub is called for. */
static __thread __nvtune_detail::Call *__nvtune_call = 0;
}

namespace __nvtune_detail {
#if __cplusplus >= 201103L
template <class T> struct Value { typedef T type; };
template <class T> struct Value<T &> { typedef T type; };
template <int...> struct Indices {};
template <int N, int... I> struct Below : Below<N - 1, N - 1, I...> {};
template <int... I> struct Below<0, I...> { typedef Indices<I...> type; };
template <class... P, int... I> static inline void call_stub(void (*stub)(P...), void **arguments, Indices<I...>) {
  static_cast<void>(arguments);
  stub(*static_cast<typename Value<P>::type *>(arguments[I])...);
}
/* Calls a stub with arguments that are given by their addresses. Returns whether there are any, if it takes some. */
template <class... P> static inline bool call_stub(void (*stub)(P...), void **arguments) {
  if (sizeof...(P) > 0 && !arguments) return false;
  call_stub(stub, arguments, typename Below<sizeof...(P)>::type());
  return true;
}
#endif

/* Has a kernel's stub launch it. Returns whether it did: there is such a stub, and it has its arguments. */
static inline bool launch_by_stub(const void *kernel, void **arguments, Call *call) {
  for (const StubList *list = __atomic_load_n(&__nvtune_stubs_1, __ATOMIC_ACQUIRE); list; list = list->next) {
    for (int i = 0; i < list->count; ++i) {
      if (list->stubs[i].kernel == kernel) return list->stubs[i].run(arguments, call);
    }
  }
  return false;
}

/* Launches an entry for a call, in this shape. */
static inline cudaError_t launch_called(Call *call, const void *key, ::dim3 grid, ::dim3 block, void **arguments,
                                        ::size_t shared) {
#ifdef __NVTUNE_CONFIGURED
  if (call->configuration) {
    cudaLaunchConfig_t changed = *static_cast<const cudaLaunchConfig_t *>(call->configuration);
    changed.gridDim = grid;
    changed.blockDim = block;
    changed.dynamicSmemBytes = shared;
    return call->error = cudaLaunchKernelExC(&changed, key, arguments);
  }
#endif
  return call->error = cudaLaunchKernel(key, grid, block, arguments, shared, call->stream);
}

/* Launches a kernel as it was called by its address. Returns whether it was. */
static inline bool launch_as_called(const void *key, void **arguments) {
  Call *const call = __nvtune_call;
  __nvtune_call = 0;
  if (call) static_cast<void>(launch_called(call, key, call->grid, call->block, arguments, call->shared));
  return call != 0;
}

#ifdef __NVTUNE_CONFIGURED
/* Returns whether each attribute of a launch means the same for another grid and block. */
static inline bool is_free_of_shape(const cudaLaunchConfig_t *configuration) {
  if (configuration->numAttrs > 0 && !configuration->attrs) return false;
  for (unsigned i = 0; i < configuration->numAttrs; ++i) {
    const cudaLaunchAttribute &attribute = configuration->attrs[i];
    switch (static_cast<int>(attribute.id)) { /* Numbers, because older toolkits have fewer names. */
    case 0:  /* cudaLaunchAttributeIgnore */
    case 1:  /* cudaLaunchAttributeAccessPolicyWindow */
    case 3:  /* cudaLaunchAttributeSynchronizationPolicy */
    case 6:  /* cudaLaunchAttributeProgrammaticStreamSerialization */
    case 7:  /* cudaLaunchAttributeProgrammaticEvent */
    case 8:  /* cudaLaunchAttributePriority */
    case 9:  /* cudaLaunchAttributeMemSyncDomainMap */
    case 10: /* cudaLaunchAttributeMemSyncDomain */
    case 12: /* cudaLaunchAttributeLaunchCompletionEvent */
    case 14: /* cudaLaunchAttributePreferredSharedMemoryCarveout */
      break;
    case 2: /* cudaLaunchAttributeCooperative */
      if (attribute.val.cooperative != 0) return false;
      break;
    case 4: /* cudaLaunchAttributeClusterDimension */
      if (attribute.val.clusterDim.x != 1 || attribute.val.clusterDim.y != 1 || attribute.val.clusterDim.z != 1) return false;
      break;
    default: return false;
    }
  }
  return true;
}
#endif
}
